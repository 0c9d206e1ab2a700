#include "deviceplugin/grpc/unix_server.h"

#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {

absl::StatusOr<std::unique_ptr<UnixServer>> UnixServer::Start(const std::string& path,
                                                              Services services) {
  std::unique_ptr<UnixServer> started(new UnixServer(std::move(services)));
  RETURN_IF_ERROR(started->Listen(path));
  return started;
}

UnixServer::~UnixServer() { Shutdown(absl::InfinitePast()); }

// The server has no port of its own: gRPC takes whoever connects, without asking who it is.
absl::Status UnixServer::Listen(const std::string& path) {
  grpc::ServerBuilder builder;
  for (grpc::Service* rpc : services_.rpcs) builder.RegisterService(rpc);
  // A stream stays open for weeks, and a peer that pings it meanwhile means no harm: gRPC would
  // hang up on it.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  queue_ = builder.AddCompletionQueue();
  lease_ = LeaseOut(*queue_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    lease_.reset();
    HandleCalls();  // a queue must be read empty before it ends
    return absl::UnavailableError(absl::StrFormat("cannot serve %s", path));
  }
  services_.serve(lease_);
  thread_ = std::thread([this] { HandleCalls(); });
  auto accepted = [this](int fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd); };
  auto turned_away = [this](const RefusedPeer& peer) {
    if (services_.turned_away) services_.turned_away(peer);
  };
  ASSIGN_OR_RETURN(listener_, Listener::Start(path, {std::move(accepted), turned_away}));
  return absl::OkStatus();
}

void UnixServer::HandleCalls() {
  using Next = grpc::CompletionQueue::NextStatus;
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    const absl::Time until = services_.tick ? services_.tick() : absl::InfiniteFuture();
    const Next next = queue_->AsyncNext(&tag, &ok, absl::ToChronoTime(until));
    if (next == Next::SHUTDOWN) return;
    if (next == Next::GOT_EVENT) Completion::Proceed(tag, ok);
  }
}

void UnixServer::Shutdown(absl::Time deadline) {
  if (server_ == nullptr) return;
  listener_.reset();
  // gRPC takes a time before 1970, such as InfinitePast(), for one that never comes.
  server_->Shutdown(absl::ToChronoTime(std::max(deadline, absl::UnixEpoch())));
  lease_.reset();
  thread_.join();  // ends with the last call
  server_.reset();
}

}  // namespace vfio_agent
