#include "deviceplugin/registry_service.h"

#include <utility>

#include "deviceplugin/unary_call.h"

namespace vfio_agent {

RegistryService::RegistryService(std::string resource, std::string endpoint, Told told)
    : resource_(std::move(resource)), endpoint_(std::move(endpoint)), told_(std::move(told)) {}

void RegistryService::Serve(const QueueLease& queue) {
  using pluginregistration::InfoRequest;
  using pluginregistration::PluginInfo;
  using pluginregistration::RegistrationStatus;
  using pluginregistration::RegistrationStatusResponse;
  UnaryCall<Rpc, InfoRequest, PluginInfo>::Await(
      {rpc_, queue, &Rpc::RequestGetInfo, [this](const InfoRequest&, PluginInfo& info) {
         info.set_type("DevicePlugin");
         info.set_name(resource_);
         info.set_endpoint(endpoint_);
         info.add_supported_versions("v1beta1");
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
