#include "deviceplugin/kubelet/pod_resources.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "deviceplugin/grpc/channel.h"
#include "iommu/tenancy/rival.h"
#include "proto/podresources_v1.grpc.pb.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// A node has some thousand units at most. Each claim repeats the names of its pod, so that an
// answer of bounded size alone would not bound the list.
constexpr size_t kMostClaims = 1 << 16;
// Of a DaemonSet a node has one pod, or two during an update.
constexpr size_t kMostRivals = 64;
// A resource's domain and name: no name of Kubernetes is longer.
constexpr size_t kLongestText = 253 + 1 + 63;

// What cannot be looked at may well be there: without this, a node whose kubelet we may not see
// would be one on which nothing is claimed.
bool MayExist(const std::string& path) {
  struct stat unused = {};
  return ::stat(path.c_str(), &unused) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

PodClaims Unknown(std::string why) { return {.known = false, .why_unknown = std::move(why)}; }

std::string Clip(const std::string& text) {
  return text.size() <= kLongestText ? text : text.substr(0, kLongestText) + "...";
}

using Stub = v1::PodResourcesLister::Stub;

// One call to its end, within the deadline.
template <typename Response, typename Request>
absl::StatusOr<Response> Call(Stub& stub, absl::Time deadline,
                              std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (
                                  Stub::*method)(grpc::ClientContext*, const Request&,
                                                 grpc::CompletionQueue*)) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  grpc::CompletionQueue queue;
  const auto call = (stub.*method)(&context, Request(), &queue);
  Response response;
  grpc::Status status;
  call->Finish(&response, &status, &status);
  RETURN_IF_ERROR(AwaitEnd(queue, context, status, deadline));
  return response;
}

// Why there is no answer, for an operator.
std::string Explain(const std::string& socket, const absl::Status& status, absl::Duration limit) {
  if (absl::IsDeadlineExceeded(status)) {
    return absl::StrFormat("the kubelet does not answer on %s: nothing within %s", socket,
                           absl::FormatDuration(limit));
  }
  if (ErrnoOf(status) != 0) {
    return absl::StrFormat("the kubelet does not answer: %s", status.message());
  }
  return absl::StrFormat("the kubelet does not list its pods on %s: %s: %s", socket,
                         absl::StatusCodeToString(status.code()), Clip(Message(status)));
}

void AddClaims(const v1::PodResources& pod, std::vector<PodClaim>& claims) {
  for (const v1::ContainerResources& container : pod.containers()) {
    for (const v1::ContainerDevices& devices : container.devices()) {
      for (const std::string& id : devices.device_ids()) {
        std::string unit = UnitOfId(id);
        if (unit.empty() || claims.size() > kMostClaims) continue;
        claims.push_back({.pod_namespace = Clip(pod.namespace_()),
                          .pod = Clip(pod.name()),
                          .container = Clip(container.name()),
                          .resource = Clip(devices.resource_name()),
                          .unit = std::move(unit)});
      }
    }
  }
}

// One that has just ended may be listed for a moment yet, and counts until the next look.
void AddRival(const v1::PodResources& pod, std::vector<std::string>& rivals) {
  if (FindRivalKind(pod.name()) == nullptr || rivals.size() >= kMostRivals) return;
  rivals.push_back(Clip(pod.namespace_()) + "/" + Clip(pod.name()));
}

void AddAllocatable(const v1::AllocatableResourcesResponse& answer, PodClaims& claims) {
  claims.allocatable.emplace();
  size_t count = 0;
  for (const v1::ContainerDevices& devices : answer.devices()) {
    for (const std::string& id : devices.device_ids()) {
      if (++count > kMostClaims || id.size() > kLongestText) {
        claims.allocatable.reset();  // a part of it would be wrong of what is not in it
        return;
      }
      (*claims.allocatable)[Clip(devices.resource_name())].insert(id);
    }
  }
}

}  // namespace

PodClaims ReadPodClaims(const KubeletPlace& place, absl::Duration limit) {
  const std::string dir = place.root_dir + "/pod-resources";
  if (!MayExist(place.device_plugin_dir) && !MayExist(dir)) return {};
  const std::string socket = dir + "/kubelet.sock";
  if (!MayExist(socket)) {
    return Unknown(absl::StrFormat(
        "the kubelet does not answer on %s: there is no such socket. Either the kubelet is down, "
        "or its root directory is another one, or that is not mounted into this container",
        socket));
  }
  const absl::Time deadline = absl::Now() + limit;
  const auto channel = Dial(socket);
  if (!channel.ok()) return Unknown(Explain(socket, channel.status(), limit));
  const auto stub = v1::PodResourcesLister::NewStub(*channel);
  const auto answer = Call(*stub, deadline, &Stub::AsyncList);
  if (!answer.ok()) return Unknown(Explain(socket, answer.status(), limit));
  PodClaims claims;
  for (const v1::PodResources& pod : answer->pod_resources()) {
    AddClaims(pod, claims.list);
    AddRival(pod, claims.rivals);
  }
  if (claims.list.size() > kMostClaims) {
    return Unknown(absl::StrFormat("the kubelet lists more than %d devices on %s: no node has them",
                                   kMostClaims, socket));
  }
  std::ranges::sort(claims.list);
  std::ranges::sort(claims.rivals);
  // Kubelets before 1.23 may not tell, and nothing depends on it that a resync does not mend.
  const auto allocatable = Call(*stub, deadline, &Stub::AsyncGetAllocatableResources);
  if (allocatable.ok()) AddAllocatable(*allocatable, claims);
  return claims;
}

}  // namespace vfio_agent
