#include "agent/dra/real_devices.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "deviceplugin/partition.h"
#include "deviceplugin/verify.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

const OfferedUnit* FindUnit(const DraOffers& offers, const std::string& resource,
                            const std::string& id) {
  const auto offer = std::ranges::find(offers.offers, resource, &Offer::resource);
  if (offer == offers.offers.end()) return nullptr;
  const auto unit = std::ranges::find(offer->units, id, &OfferedUnit::id);
  return unit == offer->units.end() ? nullptr : &*unit;
}

absl::Status Gone(const DraOffers& offers, const std::string& device) {
  if (const auto found = offers.waiting.find(device); found != offers.waiting.end()) {
    const std::string& why = found->second;
    return absl::UnavailableError(absl::StrFormat(
        "%s waits to be bound%s%s; the kubelet tries again", device, why.empty() ? "" : ": ", why));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s is no device of this node any more: delete the pod, and the scheduler finds another one",
      device));
}

}  // namespace

absl::Status NotReadYet() { return absl::UnavailableError("the agent has not read the node yet"); }

absl::StatusOr<PreparedDevice> FindAllocated(const DraOffers& offers,
                                             const AllocatedDevice& device) {
  const auto found = std::ranges::find(offers.devices, device.device, &DraDevice::name);
  if (found == offers.devices.end()) return Gone(offers, device.device);
  return PreparedDevice{.request = device.request,
                        .device = device.device,
                        .resource = found->resource,
                        .unit = found->unit,
                        .share_id = device.share_id};
}

absl::StatusOr<std::vector<RealDevice>> FindReal(const DraOffers& offers,
                                                 const PreparedClaim& claim) {
  std::vector<RealDevice> devices;
  for (const PreparedDevice& prepared : claim.devices) {
    const OfferedUnit* const unit = FindUnit(offers, prepared.resource, prepared.unit);
    const auto device = std::ranges::find(offers.devices, prepared.device, &DraDevice::name);
    if (unit == nullptr || device == offers.devices.end()) return Gone(offers, prepared.device);
    devices.push_back({.prepared = &prepared, .unit = unit, .device = &*device});
  }
  return devices;
}

absl::Status CheckDevices(const Tree& tree, const DraOffers& offers, const PreparedClaim& claim,
                          const std::vector<RealDevice>& devices) {
  std::map<std::string, std::vector<const OfferedUnit*>> resources;
  std::set<std::string> seen;
  for (const RealDevice& real : devices) {
    const OfferedUnit& unit = *real.unit;
    if (!seen.insert(unit.id).second) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s is in the claim %s/%s twice", unit.id, claim.ref.claim_namespace, claim.ref.name));
    }
    if (!unit.healthy) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s cannot be given: %s", unit.id, unit.reason));
    }
    RETURN_IF_ERROR(Annotate(VerifyUnit(tree, unit), real.prepared->resource));
    resources[real.prepared->resource].push_back(&unit);
  }
  for (const auto& [name, units] : resources) {
    const auto offer = std::ranges::find(offers.offers, name, &Offer::resource);
    RETURN_IF_ERROR(CheckPartition(*offer, units));
  }
  return absl::OkStatus();
}

std::vector<Ledger::Held> HeldNow(const DraOffers& offers, const PreparedClaim& claim) {
  std::vector<Ledger::Held> held;
  for (const PreparedDevice& device : claim.devices) {
    const OfferedUnit* const unit = FindUnit(offers, device.resource, device.unit);
    if (unit != nullptr) held.push_back({.resource = device.resource, .unit = unit});
  }
  return held;
}

std::vector<ClaimDevice> MakeAnswer(const std::string& driver, const PreparedClaim& claim) {
  std::vector<ClaimDevice> devices;
  for (const PreparedDevice& device : claim.devices) {
    // The kubelet looks for a container's devices by this name alone.
    devices.push_back({.requests = {MainRequest(device.request)},
                       .pool = claim.pool,
                       .device = device.device,
                       .cdi_ids = {ClaimCdiId(driver, claim.ref.uid, device.device)},
                       .share_id = device.share_id});
  }
  return devices;
}

}  // namespace vfio_agent
