// RegistryService: what the kubelet's plugin watcher asks of a socket that it finds in its
// directory plugins_registry.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deviceplugin/grpc/completion.h"
#include "proto/pluginregistration.grpc.pb.h"

namespace vfio_agent {

// Who a plugin says that it is.
struct PluginIdentity {
  std::string type;      // "DevicePlugin" or "DRAPlugin"
  std::string name;      // the resource, or the driver
  std::string endpoint;  // the full path of the socket with its services
  std::vector<std::string> versions;
};

// Runs beside a plugin's own services on the same server. The kubelet gives GetInfo one second:
// nothing here waits.
class RegistryService {
 public:
  // What the kubelet made of us: OK, or Unknown with its words.
  using Told = std::function<void(absl::Status)>;

  // `told` is called on the server's thread.
  RegistryService(PluginIdentity identity, Told told);
  // Of a device plugin.
  RegistryService(std::string resource, std::string endpoint, Told told);

  RegistryService(const RegistryService&) = delete;
  RegistryService& operator=(const RegistryService&) = delete;

  // To be registered with the server before it starts.
  grpc::Service& rpc() { return rpc_; }

  // Takes every call from the started server's `queue`, which one thread serves.
  void Serve(const QueueLease& queue);

 private:
  using Rpc = pluginregistration::Registration::AsyncService;

  const PluginIdentity identity_;
  const Told told_;
  Rpc rpc_;
};

}  // namespace vfio_agent
