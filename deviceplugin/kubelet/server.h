// PluginServer: one gRPC server for one resource on a unix socket of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deviceplugin/grpc/unix_server.h"
#include "deviceplugin/kubelet/registry_service.h"
#include "deviceplugin/kubelet/service.h"

namespace vfio_agent {

// "vfio-<hash of the resource>-<tag>-<count>.sock", at most 40 bytes whatever the resource's name.
// `tag` differs from process to process (a process id does not: it is often 1 in a container) and
// `count` from server to server. No name may ever come back: the kubelet takes a known one for the
// plugin that it had before, and its clean-up may delete a socket which it saw under that name.
std::string SocketName(std::string_view resource, uint32_t tag, int count);

// `dir`/`name`. InvalidArgument where a unix socket's address has no room for it (107 bytes).
absl::StatusOr<std::string> SocketPath(const std::string& dir, const std::string& name);

// Keeps gRPC from writing its own lines to stderr, unless GRPC_VERBOSITY asks for them.
void SilenceGrpc();

class PluginServer {
 public:
  struct Extras {
    std::function<void(const RefusedPeer&)> turned_away;  // on a thread of the server's; or none
    std::unique_ptr<RegistryService> registry;            // served as well; or null
  };

  // Listens before it returns. An error that comes of the socket has the errno (ErrnoOf).
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(
      const std::string& path, std::unique_ptr<DevicePluginService> service, Extras extras = {});

  ~PluginServer();  // shuts down at once

  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // Ends the streams, lets answers that are under way finish until `deadline` and then cancels
  // them, removes the socket. For many servers: EndStreams() of each, then Shutdown() of each.
  void EndStreams() { service_->EndStreams(); }
  void Shutdown(absl::Time deadline);

  const std::string& path() const { return path_; }

 private:
  PluginServer(std::string path, std::unique_ptr<DevicePluginService> service,
               std::unique_ptr<RegistryService> registry);

  std::string path_;
  std::unique_ptr<RegistryService> registry_;     // outlives the server; null where not wanted
  std::unique_ptr<DevicePluginService> service_;  // likewise
  std::unique_ptr<UnixServer> server_;            // null where it has shut down
};

}  // namespace vfio_agent
