// DraServer: the DRA driver as the kubelet sees it, on one socket in its directory
// plugins_registry.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deviceplugin/dra/dra_health.h"
#include "deviceplugin/dra/dra_service.h"
#include "deviceplugin/grpc/unix_server.h"
#include "deviceplugin/kubelet/registry_service.h"

namespace vfio_agent {

// The socket's name is a fresh one each time, so that an agent that comes and one that goes can
// both be there. It answers the plugin watcher and has the driver's own services as well.
class DraServer {
 public:
  struct Options {
    std::string driver;
    std::string registry_dir;  // the kubelet's; must be there
    uint32_t tag = 0;          // of this process
    int incarnation = 0;       // of the server in this process
    ClaimHandler* handler = nullptr;
    PublishedHealth* health = nullptr;
    // What the kubelet made of us: OK, or Unknown with its words. On the server's thread.
    RegistryService::Told told;
    std::function<void(const RefusedPeer&)> turned_away;
    absl::Duration health_again = kHealthAgain;
  };

  // Listens before it returns. An error that comes of the socket has the errno (ErrnoOf).
  static absl::StatusOr<std::unique_ptr<DraServer>> Start(Options options);
  ~DraServer();  // shuts down at once

  DraServer(const DraServer&) = delete;
  DraServer& operator=(const DraServer&) = delete;

  const std::string& path() const { return path_; }
  // Somebody has removed it: the kubelet will not find us again.
  bool SocketIsGone() const;

  // Ends streams and open calls, and removes the socket. The kubelet wipes the slices when it has
  // seen no driver for 30 s.
  void Shutdown(absl::Time deadline);

 private:
  DraServer(Options options, std::string path);

  const std::string path_;
  RegistryService registry_;
  DraService claims_;
  DraHealth health_;
  std::unique_ptr<UnixServer> server_;  // null where it has shut down
};

// The services, the newest first, as the kubelet chooses from them.
std::vector<std::string> DraVersions();

}  // namespace vfio_agent
