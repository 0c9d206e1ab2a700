#include "test/conformance/calls.h"

#include <grpcpp/client_context.h>

#include <map>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "sysfs/status.h"

namespace vfio_agent::conformance {
namespace {

absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// The kubelet itself waits for ever, except in PreStartContainer.
void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
}

}  // namespace

absl::StatusOr<v1beta1::AllocateResponse> Allocate(Stand& stand,
                                                   const std::vector<Ids>& containers) {
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  v1beta1::AllocateRequest request;
  for (const Ids& ids : containers) {
    request.add_container_requests()->mutable_devices_ids()->Add(ids.begin(), ids.end());
  }
  grpc::ClientContext context;
  SetDeadline(context);
  v1beta1::AllocateResponse response;
  RETURN_IF_ERROR(FromGrpc(plugin->Allocate(&context, request, &response)));
  return response;
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> AllocateOne(Stand& stand, const Ids& ids) {
  ASSIGN_OR_RETURN(const auto response, Allocate(stand, {ids}));
  if (response.container_responses_size() == 1) return response.container_responses(0);
  return absl::FailedPreconditionError(absl::StrFormat("%d container responses for one container",
                                                       response.container_responses_size()));
}

absl::StatusOr<Ids> Preferred(Stand& stand, const Ids& available, const Ids& must, size_t size) {
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  container.mutable_available_deviceids()->Add(available.begin(), available.end());
  container.mutable_must_include_deviceids()->Add(must.begin(), must.end());
  container.set_allocation_size(static_cast<int>(size));
  grpc::ClientContext context;
  SetDeadline(context);
  v1beta1::PreferredAllocationResponse response;
  RETURN_IF_ERROR(FromGrpc(plugin->GetPreferredAllocation(&context, request, &response)));
  if (response.container_responses().empty()) return Ids();
  const auto& ids = response.container_responses(0).deviceids();
  return Ids(ids.begin(), ids.end());
}

absl::Status PreStart(Stand& stand, const Ids& ids) {
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  v1beta1::PreStartContainerRequest request;
  request.mutable_devices_ids()->Add(ids.begin(), ids.end());
  grpc::ClientContext context;
  SetDeadline(context);
  v1beta1::PreStartContainerResponse response;
  return FromGrpc(plugin->PreStartContainer(&context, request, &response));
}

absl::StatusOr<v1beta1::DevicePluginOptions> OptionsOf(Stand& stand) {
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  grpc::ClientContext context;
  SetDeadline(context);
  v1beta1::DevicePluginOptions options;
  RETURN_IF_ERROR(FromGrpc(plugin->GetDevicePluginOptions(&context, v1beta1::Empty(), &options)));
  return options;
}

std::string Text(const v1beta1::ContainerAllocateResponse& answer) {
  std::string text;
  const auto sorted = [&text](const char* what, const auto& values) {
    for (const auto& [name, value] :
         std::map<std::string, std::string>(values.begin(), values.end())) {
      text += absl::StrFormat("%s %s=%s\n", what, name, value);
    }
  };
  sorted("env", answer.envs());
  sorted("annotation", answer.annotations());
  for (const auto& device : answer.devices()) {
    text += absl::StrFormat("device %s at %s %s\n", device.host_path(), device.container_path(),
                            device.permissions());
  }
  for (const auto& mount : answer.mounts()) {
    text += absl::StrFormat("mount %s at %s %d\n", mount.host_path(), mount.container_path(),
                            mount.read_only());
  }
  for (const auto& device : answer.cdi_devices())
    text += absl::StrFormat("cdi %s\n", device.name());
  return text;
}

}  // namespace vfio_agent::conformance
