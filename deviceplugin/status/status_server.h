// StatusServer: tells on a unix socket what the running agent holds, gRPC's health, and by
// reflection how to ask.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deviceplugin/grpc/listener.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

// Not one of its threads runs while nobody asks or watches. A QuietGrpc must be there, and outlive
// it.
class StatusServer {
 public:
  struct Sources {
    StatusSource status;
    std::function<bool()> alive;  // as /healthz
    std::function<void(const RefusedPeer&)> turned_away;
  };

  // Listens before it returns; all sources are called on threads of the server's.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(const std::string& path,
                                                             Sources sources);
  ~StatusServer();

  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  struct Running;
  explicit StatusServer(std::unique_ptr<Running> running);

  std::unique_ptr<Running> running_;
};

// Asks the agent that listens on `socket`; waits for at most `limit`. NotFound where there is none;
// every error is a sentence with the socket's name.
absl::StatusOr<AgentStatus> FetchStatus(const std::string& socket, absl::Duration limit);
// OK where that agent says that it is alive. The same errors, and FailedPrecondition where it is
// not.
absl::Status FetchHealth(const std::string& socket, absl::Duration limit);

}  // namespace vfio_agent
