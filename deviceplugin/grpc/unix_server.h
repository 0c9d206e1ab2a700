// UnixServer: gRPC services on a unix socket of the agent's own, one thread for all their calls.
#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/grpc/listener.h"

namespace vfio_agent {

// None of its threads runs while nobody asks. Only those whom the Listener lets in are heard.
class UnixServer {
 public:
  struct Services {
    std::vector<grpc::Service*> rpcs;  // outlive the server
    // Takes every call of theirs from the started server's queue.
    std::function<void(const QueueLease&)> serve;
    std::function<void(const RefusedPeer&)> turned_away;  // on a thread of the server's; or none
    // After each call, and at the time that it said last; or none. On the thread that serves the
    // queue, so that what it shares with the calls needs no lock.
    std::function<absl::Time()> tick = nullptr;
  };

  // Listens before it returns. An error that comes of the socket has the errno (ErrnoOf).
  static absl::StatusOr<std::unique_ptr<UnixServer>> Start(const std::string& path,
                                                           Services services);

  ~UnixServer();  // shuts down at once

  UnixServer(const UnixServer&) = delete;
  UnixServer& operator=(const UnixServer&) = delete;

  // Lets answers that are under way finish until `deadline` and then cancels them; removes the
  // socket.
  void Shutdown(absl::Time deadline);

 private:
  explicit UnixServer(Services services) : services_(std::move(services)) {}
  absl::Status Listen(const std::string& path);
  void HandleCalls();

  Services services_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;  // outlives the server
  QueueLease lease_;                                    // held until the server has shut down
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;                  // sleeps in the queue
  std::unique_ptr<Listener> listener_;  // ends before the server, to which it gives connections
};

}  // namespace vfio_agent
