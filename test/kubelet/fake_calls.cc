// The calls that the fake kubelet makes at pod admission and container start.
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "test/kubelet/fake_kubelet.h"
#include "test/kubelet/fake_plugin.h"

namespace vfio_agent {
namespace {

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

absl::StatusOr<FakeKubelet::PluginPtr> FakeKubelet::Newest(const std::string& resource) const {
  const std::unique_lock lock(mutex_);
  const auto found = connected_.find(resource);
  if (found != connected_.end() && !found->second.empty() && found->second.back()->watched) {
    return found->second.back();
  }
  const bool stopped = resources_.contains(resource) ? resources_.at(resource).stopped
                                                     : remembered_.contains(resource);
  return absl::UnavailableError(stopped
                                    ? absl::StrFormat("endpoint of %s has been stopped", resource)
                                    : absl::StrFormat("%s is not registered", resource));
}

absl::StatusOr<std::shared_ptr<FakeKubelet::Stub>> FakeKubelet::Raw(
    const std::string& resource) const {
  const auto plugin = Newest(resource);
  if (!plugin.ok()) return plugin.status();
  return (*plugin)->stub;
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> FakeKubelet::Allocate(
    const std::string& resource, const std::vector<std::string>& ids) {
  const auto plugin = Newest(resource);
  if (!plugin.ok()) return plugin.status();
  v1beta1::AllocateRequest request;
  v1beta1::ContainerAllocateRequest& container = *request.add_container_requests();
  for (const std::string& id : ids) container.add_devices_ids(id);
  grpc::ClientContext context;
  v1beta1::AllocateResponse response;
  const grpc::Status status = (*plugin)->stub->Allocate(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  if (response.container_responses().empty()) {
    return absl::UnknownError("no containers return in allocation response");
  }
  return response.container_responses(0);
}

absl::StatusOr<std::vector<std::string>> FakeKubelet::Preferred(
    const std::string& resource, const std::vector<std::string>& available,
    const std::vector<std::string>& must, int size) {
  const auto plugin = Newest(resource);
  if (!plugin.ok()) return plugin.status();
  if (!(*plugin)->options.get_preferred_allocation_available()) return std::vector<std::string>();
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  for (const std::string& id : available) container.add_available_deviceids(id);
  for (const std::string& id : must) container.add_must_include_deviceids(id);
  container.set_allocation_size(size);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  const grpc::Status status = (*plugin)->stub->GetPreferredAllocation(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  if (response.container_responses().empty()) return std::vector<std::string>();
  const auto& chosen = response.container_responses(0).deviceids();
  return std::vector<std::string>(chosen.begin(), chosen.end());
}

absl::Status FakeKubelet::PreStart(const std::string& resource,
                                   const std::vector<std::string>& ids) {
  const auto plugin = Newest(resource);
  if (!plugin.ok()) return plugin.status();
  if (!(*plugin)->options.pre_start_required()) return absl::OkStatus();
  v1beta1::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_devices_ids(id);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  v1beta1::PreStartContainerResponse response;
  return FromGrpc((*plugin)->stub->PreStartContainer(&context, request, &response));
}

}  // namespace vfio_agent
