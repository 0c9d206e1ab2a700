#include "deviceplugin/kubelet/server.h"

#include <grpc/support/log.h>
#include <sys/un.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
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
                           std::unique_ptr<RegistryService> registry)
    : path_(std::move(path)), registry_(std::move(registry)), service_(std::move(service)) {}

PluginServer::~PluginServer() { Shutdown(absl::InfinitePast()); }

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(
    const std::string& path, std::unique_ptr<DevicePluginService> service, Extras extras) {
  std::unique_ptr<PluginServer> started(
      new PluginServer(path, std::move(service), std::move(extras.registry)));
  UnixServer::Services services{.rpcs = {&started->service_->rpc()},
                                .turned_away = std::move(extras.turned_away)};
  if (started->registry_ != nullptr) services.rpcs.push_back(&started->registry_->rpc());
  services.serve = [server = started.get()](const QueueLease& queue) {
    server->service_->Serve(queue);
    if (server->registry_ != nullptr) server->registry_->Serve(queue);
  };
  ASSIGN_OR_RETURN(started->server_, UnixServer::Start(path, std::move(services)));
  return started;
}

void PluginServer::Shutdown(absl::Time deadline) {
  if (server_ == nullptr) return;
  EndStreams();
  server_->Shutdown(deadline);
  server_.reset();
}

}  // namespace vfio_agent
