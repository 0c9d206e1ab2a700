#include "deviceplugin/dra/dra_server.h"

#include <sys/stat.h>

#include <utility>

#include "deviceplugin/kubelet/server.h"
#include "sysfs/status.h"

namespace vfio_agent {

std::vector<std::string> DraVersions() {
  return {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
          "v1alpha1.DRAResourceHealth"};
}

DraServer::DraServer(Options options, std::string path)
    : path_(std::move(path)),
      registry_({.type = "DRAPlugin",
                 .name = options.driver,
                 .endpoint = path_,
                 .versions = DraVersions()},
                std::move(options.told)),
      claims_(*options.handler),
      health_(*options.health, options.health_again) {}

DraServer::~DraServer() { Shutdown(absl::InfinitePast()); }

absl::StatusOr<std::unique_ptr<DraServer>> DraServer::Start(Options options) {
  ASSIGN_OR_RETURN(std::string path,
                   SocketPath(options.registry_dir,
                              SocketName(options.driver, options.tag, options.incarnation)));
  auto turned_away = std::move(options.turned_away);
  std::unique_ptr<DraServer> started(new DraServer(std::move(options), std::move(path)));
  DraServer* const server = started.get();
  UnixServer::Services services{.rpcs = {&server->registry_.rpc()},
                                .turned_away = std::move(turned_away),
                                .tick = [server] { return server->health_.Tick(); }};
  for (grpc::Service* rpc : server->claims_.rpcs()) services.rpcs.push_back(rpc);
  for (grpc::Service* rpc : server->health_.rpcs()) services.rpcs.push_back(rpc);
  services.serve = [server](const QueueLease& queue) {
    server->registry_.Serve(queue);
    server->claims_.Serve(queue);
    server->health_.Serve(queue);
  };
  ASSIGN_OR_RETURN(started->server_, UnixServer::Start(started->path_, std::move(services)));
  return started;
}

bool DraServer::SocketIsGone() const {
  struct stat info = {};
  return ::lstat(path_.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode);
}

void DraServer::Shutdown(absl::Time deadline) {
  if (server_ == nullptr) return;
  claims_.EndCalls();
  health_.EndStreams();
  server_->Shutdown(deadline);
  server_.reset();
}

}  // namespace vfio_agent
