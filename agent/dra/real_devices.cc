#include "agent/dra/real_devices.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "deviceplugin/offer/partition.h"
#include "deviceplugin/offer/verify.h"
#include "iommu/code.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// No id is in two offers.
const OfferedUnit* FindUnit(const DraOffers& offers, const std::string& id) {
  for (const Offer& offer : offers.offers) {
    const auto unit = std::ranges::find(offer.units, id, &OfferedUnit::id);
    if (unit != offer.units.end()) return &*unit;
  }
  return nullptr;
}

// Groups have other numbers after a boot.
bool IsAsGiven(const PreparedDevice& device, const OfferedUnit& unit) {
  return !device.given ||
         (device.given->addresses == unit.addresses && device.given->mdev_type == unit.mdev_type &&
          device.given->vgpu_type == unit.vgpu_type);
}

absl::Status Otherwise(const PreparedDevice& device, const OfferedUnit& unit) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: %s: the claim was given %s, and the unit is %s now: delete the pod, and a new one gets "
      "what is there now",
      unit.id, CodeName(Code::kGroupChanged), absl::StrJoin(device.given->addresses, ","),
      absl::StrJoin(unit.addresses, ",")));
}

// What of it can be looked at in the kernel.
OfferedUnit UnitOf(const PreparedDevice& device) {
  const GivenUnit& given = *device.given;
  OfferedUnit unit{.id = device.unit,
                   .addresses = given.addresses,
                   .group = given.groups.front(),
                   .groups = given.groups,
                   .mdev_type = given.mdev_type,
                   .vgpu_type = given.vgpu_type};
  if (unit.mdev_type.empty()) unit.members = unit.addresses;
  return unit;
}

bool IsOfThisBoot(const PreparedClaim& claim, const std::string& boot_id) {
  return !boot_id.empty() && claim.boot_id == boot_id;
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
  const OfferedUnit* const unit = FindUnit(offers, found->unit);
  if (unit == nullptr) return Gone(offers, device.device);
  return PreparedDevice{.request = device.request,
                        .device = device.device,
                        .resource = found->resource,
                        .unit = found->unit,
                        .share_id = device.share_id,
                        .given = GivenOf(*unit)};
}

GivenUnit GivenOf(const OfferedUnit& unit) {
  return {.addresses = unit.addresses,
          .groups = GroupsOf(unit),
          .mdev_type = unit.mdev_type,
          .vgpu_type = unit.vgpu_type};
}

absl::StatusOr<std::vector<RealDevice>> FindReal(const DraOffers& offers,
                                                 const PreparedClaim& claim) {
  std::vector<RealDevice> devices;
  for (const PreparedDevice& prepared : claim.devices) {
    const OfferedUnit* const unit = FindUnit(offers, prepared.unit);
    const auto device = std::ranges::find(offers.devices, prepared.device, &DraDevice::name);
    if (unit == nullptr || device == offers.devices.end()) return Gone(offers, prepared.device);
    if (!IsAsGiven(prepared, *unit)) return Otherwise(prepared, *unit);
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
    RETURN_IF_ERROR(Annotate(VerifyUnit(tree, unit), real.device->resource));
    resources[real.device->resource].push_back(&unit);
  }
  for (const auto& [name, units] : resources) {
    const auto offer = std::ranges::find(offers.offers, name, &Offer::resource);
    RETURN_IF_ERROR(CheckPartition(*offer, units));
  }
  return absl::OkStatus();
}

std::vector<Ledger::Held> HeldOf(const std::vector<RealDevice>& devices) {
  std::vector<Ledger::Held> held;
  for (const RealDevice& real : devices) {
    held.push_back({.resource = real.prepared->resource, .unit = real.unit});
  }
  return held;
}

std::vector<OfferedUnit> UnitsHeld(const DraOffers& offers, const PreparedClaim& claim,
                                   const std::string& boot_id) {
  std::vector<OfferedUnit> units;
  for (const PreparedDevice& device : claim.devices) {
    const OfferedUnit* const unit = FindUnit(offers, device.unit);
    const bool recorded = device.given && IsOfThisBoot(claim, boot_id);
    if (unit != nullptr && (!recorded || IsAsGiven(device, *unit))) {
      units.push_back(*unit);
    } else if (recorded) {
      units.push_back(UnitOf(device));
    }
  }
  return units;
}

absl::Status CheckStands(const Tree& tree, const PreparedClaim& claim, const std::string& boot_id,
                         const absl::Status& why) {
  if (!IsOfThisBoot(claim, boot_id)) return why;
  for (const PreparedDevice& device : claim.devices) {
    if (!device.given) return why;
    RETURN_IF_ERROR(Annotate(VerifyUnit(tree, UnitOf(device)), device.resource));
  }
  return absl::OkStatus();
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
