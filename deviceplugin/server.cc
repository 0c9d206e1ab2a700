#include "deviceplugin/server.h"

#include <grpc/support/log.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <sys/un.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "deviceplugin/completion.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// FNV-1a, 32 bits: short and the same in every build, unlike std::hash.
uint32_t Hash(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace

std::string SocketName(std::string_view resource, uint32_t tag, int count) {
  return absl::StrFormat("vfio-%08x-%08x-%d.sock", Hash(resource), tag, count);
}

absl::StatusOr<std::string> SocketPath(const std::string& dir, const std::string& name) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  std::string path = absl::StrFormat("%s/%s", dir, name);
  if (path.size() > kMost) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: a unix socket's path has at most %d bytes, this has %d: choose a "
                        "shorter directory",
                        path, kMost, path.size()));
  }
  return path;
}

void SilenceGrpc() {
  // Variables are set at the program's start only, when there is one thread.
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;  // NOLINT(concurrency-mt-unsafe)
  gpr_set_log_function([](gpr_log_func_args*) {});
}

PluginServer::PluginServer(std::string path, std::unique_ptr<DevicePluginService> service,
                           Extras extras)
    : path_(std::move(path)), extras_(std::move(extras)), service_(std::move(service)) {}

PluginServer::~PluginServer() { Shutdown(absl::InfinitePast()); }

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(
    const std::string& path, std::unique_ptr<DevicePluginService> service, Extras extras) {
  std::unique_ptr<PluginServer> started(
      new PluginServer(path, std::move(service), std::move(extras)));
  RETURN_IF_ERROR(started->Listen());
  return started;
}

// The server has no port of its own: gRPC takes whoever connects, without asking who it is.
absl::Status PluginServer::Listen() {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service_->rpc());
  if (extras_.registry != nullptr) builder.RegisterService(&extras_.registry->rpc());
  // A stream stays open for weeks, and a peer that pings it meanwhile means no harm: gRPC would
  // hang up on it.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  queue_ = builder.AddCompletionQueue();
  lease_ = LeaseOut(*queue_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    lease_.reset();
    HandleCalls();  // a queue must be read empty before it ends
    return absl::UnavailableError(absl::StrFormat("cannot serve %s", path_));
  }
  Serve();
  auto accepted = [this](int fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd); };
  auto turned_away = [this](const RefusedPeer& peer) {
    if (extras_.turned_away) extras_.turned_away(peer);
  };
  ASSIGN_OR_RETURN(listener_, Listener::Start(path_, {std::move(accepted), turned_away}));
  return absl::OkStatus();
}

void PluginServer::Serve() {
  service_->Serve(lease_);
  if (extras_.registry != nullptr) extras_.registry->Serve(lease_);
  thread_ = std::thread([this] { HandleCalls(); });
}

void PluginServer::HandleCalls() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) Completion::Proceed(tag, ok);
}

void PluginServer::Shutdown(absl::Time deadline) {
  if (server_ == nullptr) return;
  EndStreams();
  listener_.reset();
  server_->Shutdown(absl::ToChronoTime(deadline));
  lease_.reset();
  thread_.join();  // ends with the last call
  server_.reset();
}

}  // namespace vfio_agent
