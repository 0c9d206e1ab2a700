#include "deviceplugin/dra/dra_service.h"

#include <map>
#include <memory>
#include <utility>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra;

struct V1 {
  using Service = dra::v1::DRAPlugin::AsyncService;
  using PrepareRequest = dra::v1::NodePrepareResourcesRequest;
  using PrepareResponse = dra::v1::NodePrepareResourcesResponse;
  using Prepared = dra::v1::NodePrepareResourceResponse;
  using UnprepareRequest = dra::v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = dra::v1::NodeUnprepareResourcesResponse;
  static void SetShare(const ClaimDevice& device, dra::v1::Device& out) {
    if (device.share_id) out.set_share_id(*device.share_id);
  }
};

struct V1Beta1 {
  using Service = dra::v1beta1::DRAPlugin::AsyncService;
  using PrepareRequest = dra::v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = dra::v1beta1::NodePrepareResourcesResponse;
  using Prepared = dra::v1beta1::NodePrepareResourceResponse;
  using UnprepareRequest = dra::v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = dra::v1beta1::NodeUnprepareResourcesResponse;
  static void SetShare(const ClaimDevice&, dra::v1beta1::Device&) {}
};

template <typename Claim>
ClaimRef RefOf(const Claim& claim) {
  return {.claim_namespace = claim.namespace_(), .name = claim.name(), .uid = claim.uid()};
}

template <typename Version>
typename Version::Prepared ToMessage(const absl::StatusOr<std::vector<ClaimDevice>>& devices) {
  typename Version::Prepared prepared;
  if (!devices.ok()) {
    prepared.set_error(Message(devices.status()));
    return prepared;
  }
  for (const ClaimDevice& device : *devices) {
    auto& out = *prepared.add_devices();
    for (const std::string& request : device.requests) out.add_request_names(request);
    out.set_pool_name(device.pool);
    out.set_device_name(device.device);
    for (const std::string& id : device.cdi_ids) out.add_cdi_device_ids(id);
    Version::SetShare(device, out);
  }
  return prepared;
}

// Collects the answers of one call, which may come from several threads, and hands them out when
// the last one is there.
template <typename Version>
class Collector {
 public:
  using Response = typename Version::PrepareResponse;

  Collector(size_t awaited, std::function<void(Response)> done)
      : awaited_(awaited), done_(std::move(done)) {}

  void Answer(const std::string& uid, const absl::StatusOr<std::vector<ClaimDevice>>& devices) {
    Response all;
    {
      const MutexLock lock(mutex_);
      (*response_.mutable_claims())[uid] = ToMessage<Version>(devices);
      if (--awaited_ > 0) return;
      all.Swap(&response_);
    }
    done_(std::move(all));
  }

 private:
  Mutex mutex_;
  size_t awaited_ ABSL_GUARDED_BY(mutex_);
  Response response_ ABSL_GUARDED_BY(mutex_);
  const std::function<void(Response)> done_;
};

template <typename Version>
void PrepareAll(ClaimHandler& handler, const typename Version::PrepareRequest& request,
                std::function<void(typename Version::PrepareResponse)> done) {
  std::map<std::string, ClaimRef> claims;  // one of each uid: the answer has no room for more
  for (const auto& claim : request.claims()) claims.emplace(claim.uid(), RefOf(claim));
  if (claims.empty()) return done({});
  const auto collector = std::make_shared<Collector<Version>>(claims.size(), std::move(done));
  for (const auto& entry : claims) {
    handler.Prepare(entry.second, [collector, uid = entry.first](const auto& devices) {
      collector->Answer(uid, devices);
    });
  }
}

template <typename Version>
void UnprepareAll(ClaimHandler& handler, const typename Version::UnprepareRequest& request,
                  const std::function<void(typename Version::UnprepareResponse)>& done) {
  typename Version::UnprepareResponse response;
  for (const auto& claim : request.claims()) {
    const absl::Status status = handler.Unprepare(RefOf(claim));
    auto& answer = (*response.mutable_claims())[claim.uid()];
    if (!status.ok()) answer.set_error(Message(status));
  }
  done(std::move(response));
}

template <typename Version>
void AwaitBoth(typename Version::Service& rpc, const QueueLease& queue, ClaimHandler& handler,
               OpenCalls& open) {
  using Service = typename Version::Service;
  using PrepareRequest = typename Version::PrepareRequest;
  using PrepareResponse = typename Version::PrepareResponse;
  using UnprepareRequest = typename Version::UnprepareRequest;
  using UnprepareResponse = typename Version::UnprepareResponse;
  DeferredCall<Service, PrepareRequest, PrepareResponse>::Await(
      {rpc, queue, &Service::RequestNodePrepareResources,
       [&handler](const PrepareRequest& request, std::function<void(PrepareResponse)> done) {
         PrepareAll<Version>(handler, request, std::move(done));
       },
       &open});
  DeferredCall<Service, UnprepareRequest, UnprepareResponse>::Await(
      {rpc, queue, &Service::RequestNodeUnprepareResources,
       [&handler](const UnprepareRequest& request, std::function<void(UnprepareResponse)> done) {
         UnprepareAll<Version>(handler, request, done);
       },
       &open});
}

}  // namespace

void DraService::Serve(const QueueLease& queue) {
  AwaitBoth<V1>(v1_, queue, handler_, open_);
  AwaitBoth<V1Beta1>(v1beta1_, queue, handler_, open_);
}

}  // namespace vfio_agent
