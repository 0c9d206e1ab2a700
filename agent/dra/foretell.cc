#include "agent/dra/foretell.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/daemon/cluster_teller.h"
#include "sysfs/clock.h"

namespace vfio_agent {
namespace {

void BindAll(const Plan& plan, NodeFacts& facts) {
  for (const GroupPlan& group : plan.groups) {
    for (const Member& member : group.members) {
      if (member.action != MemberAction::kBind) continue;
      const auto device = std::ranges::find(facts.devices, member.address, &PciDevice::address);
      if (device != facts.devices.end()) device->driver = member.to;
    }
  }
}

void MakeReady(Plan& plan) {
  for (Resource& resource : plan.resources) {
    for (Unit& unit : resource.units) {
      if (unit.state == UnitState::kToBind) unit.state = UnitState::kReady;
    }
  }
}

}  // namespace

std::vector<DraDevice> ForetellDraDevices(const Picture& picture) {
  NodeFacts facts = picture.facts;
  Plan plan = picture.plan;
  BindAll(plan, facts);
  MakeReady(plan);
  const Tenancy* const tenancy = picture.custody.tenancy ? &*picture.custody.tenancy : nullptr;
  const std::vector<Offer> offers =
      MakeOffers(plan, facts, {}, {.serve = Serve::kDra}, tenancy, MonotonicNow());
  return MakeDraDevices(offers, plan, facts, picture.names);
}

SlicePool PoolOf(const Settings& settings) {
  return {.driver = settings.dra_driver, .node = NodeNameOf(settings).value_or("")};
}

TableRows DraDeviceRows(const std::vector<DraDevice>& devices) {
  TableRows rows = {{"DEVICE", "RESOURCE", "UNIT", "SHARES GROUP", "WHY NOT"}};
  for (const DraDevice& device : devices) {
    rows.push_back({device.name, device.resource, device.unit,
                    device.shared_groups.empty() ? "-" : absl::StrJoin(device.shared_groups, ","),
                    device.reason.empty() ? "-" : device.reason});
  }
  return rows;
}

Json SlicesDocument(const SlicePool& pool, const std::vector<DraDevice>& devices) {
  return {{"schema", "vfio-agent/slices/v1"}, {"slices", MakeSlices(pool, devices)}};
}

}  // namespace vfio_agent
