#include "deviceplugin/kubelet/service.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "deviceplugin/grpc/unary_call.h"
#include "deviceplugin/kubelet/watch_stream.h"
#include "deviceplugin/offer/allocate.h"
#include "deviceplugin/offer/egm_nodes.h"
#include "deviceplugin/offer/ledger.h"
#include "deviceplugin/offer/partition.h"
#include "deviceplugin/offer/preferred.h"
#include "deviceplugin/offer/verify.h"
#include "iommu/code.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// Both enumerations are gRPC's canonical codes, number for number.
grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), Message(status)};
}

template <typename Repeated>
std::vector<std::string> ToVector(const Repeated& ids) {
  return {ids.begin(), ids.end()};
}

// Looks at each of `units` once more. Those that are not as they stand in the offer, since together
// they are worth more, are kept in `own`.
absl::Status Verify(const Offer& offer, const Tree& tree, const AskDrivers& ask,
                    std::vector<const OfferedUnit*>& units, std::deque<OfferedUnit>& own) {
  for (const OfferedUnit* unit : units) {
    const absl::Status status = VerifyUnit(tree, *unit, ask);
    if (!status.ok()) return Annotate(status, offer.resource);
  }
  const absl::Status status = AddEgmNodes(tree, offer, units, own);
  return status.ok() ? status : Annotate(status, offer.resource);
}

using Containers = std::vector<std::vector<const OfferedUnit*>>;

// The offer may have been replaced, and the grant that it came from dropped, between our look at
// the offer and at the ledger: what the newest offer withholds, or has as something else, is not
// given.
absl::Status CheckNewest(const IndexedOffer& held, const IndexedOffer& newest,
                         const Containers& containers) {
  for (const auto& units : containers) {
    std::vector<std::string> ids;
    for (const OfferedUnit* unit : units) ids.push_back(unit->id);
    RETURN_IF_ERROR(FindUnits(newest, ids).status());
    for (const std::string& id : ids) {
      if (HaveOneAnswer(held.unit(*held.Find(id)), newest.unit(*newest.Find(id)))) continue;
      return absl::FailedPreconditionError(
          absl::StrFormat("%s: %s: %s: it stands for something else since a moment ago",
                          newest.offer().resource, id, CodeName(Code::kGroupChanged)));
    }
  }
  return absl::OkStatus();
}

absl::Status AllocateAll(const Published& published, const Tree& tree, const AskDrivers& ask,
                         Ledger& ledger, const v1beta1::AllocateRequest& request,
                         v1beta1::AllocateResponse& response) {
  const std::shared_ptr<const IndexedOffer> held = published.Get();
  const IndexedOffer& offer = *held;
  Containers containers;
  std::deque<OfferedUnit> own;
  for (const v1beta1::ContainerAllocateRequest& container : request.container_requests()) {
    ASSIGN_OR_RETURN(containers.emplace_back(),
                     FindUnits(offer, ToVector(container.devices_ids())));
    RETURN_IF_ERROR(Verify(offer.offer(), tree, ask, containers.back(), own));
    RETURN_IF_ERROR(CheckPartition(offer.offer(), containers.back()));
  }
  const std::string& resource = offer.offer().resource;
  RETURN_IF_ERROR(Annotate(ledger.Take(resource, containers), resource));
  if (const auto newest = published.Get(); newest != held) {
    const absl::Status status = CheckNewest(offer, *newest, containers);
    if (!status.ok()) {
      ledger.GiveBack(containers);
      return status;
    }
  }
  for (const auto& units : containers) {
    *response.add_container_responses() = MakeAllocation(offer.offer(), units);
  }
  return absl::OkStatus();
}

// Before a container starts: with the very answer that the kubelet has kept of its units. It may
// start with its own, whatever keeps these from others, or kept them from others a moment ago.
absl::Status CheckStart(const IndexedOffer& offer, const Tree& tree, const AskDrivers& ask,
                        Ledger& ledger, const std::vector<std::string>& ids) {
  const auto fit = [&ledger](const OfferedUnit& unit) {
    return unit.healthy || unit.kept || ledger.IsNews(unit.id);
  };
  std::deque<OfferedUnit> own;
  ASSIGN_OR_RETURN(auto units, FindUnits(offer, ids, fit));
  RETURN_IF_ERROR(Verify(offer.offer(), tree, ask, units, own));
  const std::string& resource = offer.offer().resource;
  for (const OfferedUnit* unit : units) {
    RETURN_IF_ERROR(Annotate(ledger.CheckUnchanged(*unit), resource));
  }
  return Annotate(ledger.Start(resource, units), resource);
}

// Names the method's types once, so that callers need not.
template <typename Rpc, typename Request, typename Response>
void AwaitCalls(const UnaryMethod<Rpc, Request, Response>& method) {
  UnaryCall<Rpc, Request, Response>::Await(method);
}

}  // namespace

// The streams that may be open still.
class DevicePluginService::Streams {
 public:
  void Add(const std::shared_ptr<WatchStream>& stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool ending = false;
    {
      const MutexLock lock(mutex_);
      ending = ending_;
      std::erase_if(streams_, [](const std::weak_ptr<WatchStream>& old) { return old.expired(); });
      streams_.push_back(stream);
    }
    if (ending) stream->End();
  }

  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::weak_ptr<WatchStream>> streams;
    {
      const MutexLock lock(mutex_);
      ending_ = true;
      streams.swap(streams_);
    }
    for (const std::weak_ptr<WatchStream>& stream : streams) {
      if (const auto alive = stream.lock()) alive->End();
    }
  }

 private:
  Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<WatchStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

DevicePluginService::DevicePluginService(Published& published, const Tree& tree, AskDrivers ask,
                                         Ledger& ledger, Observer observer)
    : published_(published),
      tree_(tree),
      ask_(std::move(ask)),
      ledger_(ledger),
      observer_(std::move(observer)),
      streams_(std::make_unique<Streams>()) {}

DevicePluginService::~DevicePluginService() = default;

void DevicePluginService::Serve(const QueueLease& queue) {
  AwaitStream(queue);
  AwaitCalls<Rpc, v1beta1::Empty, v1beta1::DevicePluginOptions>(
      {rpc_, queue, &Rpc::RequestGetDevicePluginOptions,
       [](const v1beta1::Empty&, v1beta1::DevicePluginOptions& options) {
         options = PluginOptions();
         return grpc::Status::OK;
       }});
  AwaitCalls<Rpc, v1beta1::PreferredAllocationRequest, v1beta1::PreferredAllocationResponse>(
      {rpc_, queue, &Rpc::RequestGetPreferredAllocation,
       [this](const auto& request, auto& response) {
         return GetPreferredAllocation(request, response);
       }});
  AwaitCalls<Rpc, v1beta1::AllocateRequest, v1beta1::AllocateResponse>(
      {rpc_, queue, &Rpc::RequestAllocate,
       [this](const auto& request, auto& response) { return Allocate(request, response); }});
  AwaitCalls<Rpc, v1beta1::PreStartContainerRequest, v1beta1::PreStartContainerResponse>(
      {rpc_, queue, &Rpc::RequestPreStartContainer,
       [this](const auto& request, auto&) { return PreStartContainer(request); }});
}

void DevicePluginService::AwaitStream(const QueueLease& queue) {
  auto opened = [this, queue](const std::shared_ptr<WatchStream>& stream) {
    AwaitStream(queue);
    observer_({.kind = ServiceEvent::Kind::kListOpened});
    streams_->Add(stream);
  };
  auto closed = [this] { observer_({.kind = ServiceEvent::Kind::kListClosed}); };
  WatchStream::Await(rpc_, queue, published_, {std::move(opened), std::move(closed)});
}

grpc::Status DevicePluginService::GetPreferredAllocation(
    const v1beta1::PreferredAllocationRequest& request,
    v1beta1::PreferredAllocationResponse& response) {
  const std::shared_ptr<const IndexedOffer> offer = published_.Get();
  for (const auto& container : request.container_requests()) {
    const Preference wanted{.available = ToVector(container.available_deviceids()),
                            .must = ToVector(container.must_include_deviceids()),
                            .size = static_cast<size_t>(std::max(0, container.allocation_size()))};
    v1beta1::ContainerPreferredAllocationResponse& answer = *response.add_container_responses();
    for (std::string& id : PreferUnits(*offer, wanted)) answer.add_deviceids(std::move(id));
  }
  return grpc::Status::OK;
}

grpc::Status DevicePluginService::Allocate(const v1beta1::AllocateRequest& request,
                                           v1beta1::AllocateResponse& response) {
  const absl::Time start = absl::Now();
  const absl::Status status = AllocateAll(published_, tree_, ask_, ledger_, request, response);
  ServiceEvent event{
      .kind = status.ok() ? ServiceEvent::Kind::kAllocated : ServiceEvent::Kind::kAllocateRefused,
      .text = Message(status),
      .took = absl::Now() - start};
  for (const auto& container : request.container_requests()) {
    event.ids.insert(event.ids.end(), container.devices_ids().begin(),
                     container.devices_ids().end());
  }
  observer_(std::move(event));
  return ToGrpc(status);
}

grpc::Status DevicePluginService::PreStartContainer(
    const v1beta1::PreStartContainerRequest& request) {
  std::vector<std::string> ids = ToVector(request.devices_ids());
  const absl::Status status = CheckStart(*published_.Get(), tree_, ask_, ledger_, ids);
  if (!status.ok()) {
    observer_({.kind = ServiceEvent::Kind::kPreStartRefused,
               .ids = std::move(ids),
               .text = Message(status)});
  }
  return ToGrpc(status);
}

void DevicePluginService::EndStreams() { streams_->End(); }

v1beta1::DevicePluginOptions PluginOptions() {
  v1beta1::DevicePluginOptions options;
  options.set_pre_start_required(true);
  options.set_get_preferred_allocation_available(true);
  return options;
}

}  // namespace vfio_agent
