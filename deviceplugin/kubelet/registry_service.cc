#include "deviceplugin/kubelet/registry_service.h"

#include <utility>

#include "deviceplugin/grpc/unary_call.h"

namespace vfio_agent {

RegistryService::RegistryService(PluginIdentity identity, Told told)
    : identity_(std::move(identity)), told_(std::move(told)) {}

RegistryService::RegistryService(std::string resource, std::string endpoint, Told told)
    : RegistryService({.type = "DevicePlugin",
                       .name = std::move(resource),
                       .endpoint = std::move(endpoint),
                       .versions = {"v1beta1"}},
                      std::move(told)) {}

void RegistryService::Serve(const QueueLease& queue) {
  using pluginregistration::InfoRequest;
  using pluginregistration::PluginInfo;
  using pluginregistration::RegistrationStatus;
  using pluginregistration::RegistrationStatusResponse;
  UnaryCall<Rpc, InfoRequest, PluginInfo>::Await(
      {rpc_, queue, &Rpc::RequestGetInfo, [this](const InfoRequest&, PluginInfo& info) {
         info.set_type(identity_.type);
         info.set_name(identity_.name);
         info.set_endpoint(identity_.endpoint);
         for (const std::string& version : identity_.versions) info.add_supported_versions(version);
         return grpc::Status::OK;
       }});
  UnaryCall<Rpc, RegistrationStatus, RegistrationStatusResponse>::Await(
      {rpc_, queue, &Rpc::RequestNotifyRegistrationStatus,
       [this](const RegistrationStatus& status, RegistrationStatusResponse&) {
         told_(status.plugin_registered() ? absl::OkStatus() : absl::UnknownError(status.error()));
         return grpc::Status::OK;
       }});
}

}  // namespace vfio_agent
