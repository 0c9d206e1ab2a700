#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/explain/explanation.h"
#include "iommu/plan/planning.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

std::string VfVerdictWords(const GroupPlan& group) {
  switch (group.verdict) {
    case Verdict::kBind:
      return "stays with the host; `vfio-agent bind` would make its virtual functions";
    case Verdict::kBound:
      return "stays with the host; its virtual functions are there and go to guests";
    case Verdict::kRefused:
      return std::ranges::count(group.refusals, Code::kPfHasVfs, &Refusal::code) > 0
                 ? "stays with the host; keeps the virtual functions that it has, which are not as "
                   "many as configured"
                 : "its virtual functions cannot be made as configured";
    case Verdict::kUnselected:
      return "stays with the host; virtual functions that it has go to guests";
  }
  return "";
}

// Its virtual functions are given away where it has some; none are made.
std::vector<Refusal> WhyNoVfs(const NodeFacts& facts, const GroupPlan& group) {
  for (const Member& member : group.members) {
    const PciDevice* const device = FindDevice(facts, member.address);
    if (device != nullptr && !device->virtfns.empty()) return {};
  }
  return {{.code = Code::kExcluded,
           .group = group.group,
           .text = "it has no virtual functions, and the configuration makes none",
           .remedy = "set resources[].sriov.vfs"}};
}

// The entry that has the member, or its physical function, stay with its driver.
std::string KeeperOf(const NodeFacts& facts, const Policy& policy, const PciDevice& device) {
  const std::string entry = ParentEntry(policy, device);
  const PciDevice* const physical = device.physfn ? FindDevice(facts, *device.physfn) : nullptr;
  return entry.empty() && physical != nullptr ? ParentEntry(policy, *physical) : entry;
}

}  // namespace

std::vector<Refusal> WhyUnselected(const NodeFacts& facts, const Policy& policy,
                                   const GroupPlan& group) {
  if (IsPhysical(group)) return WhyNoVfs(facts, group);
  for (const Member& member : group.members) {
    const PciDevice* const device = FindDevice(facts, member.address);
    const std::string entry = device == nullptr ? "" : KeeperOf(facts, policy, *device);
    if (entry.empty()) continue;
    return {
        {.code = Code::kExcluded,
         .group = group.group,
         .address = member.address,
         .text = absl::StrFormat("%s has the card of %s, which stays with its driver, and "
                                 "nothing is to be done for it",
                                 entry, Spell(*device)),
         .remedy = absl::StrFormat("see `vfio-agent plan`; to give it away whole, narrow %s and "
                                   "add it to resources[].select",
                                   entry)}};
  }
  return {{.code = Code::kExcluded,
           .group = group.group,
           .text = "no member is selected by the configuration",
           .remedy = "add it to resources[].select"}};
}

std::string PortWords(const PciDevice& device) {
  const Fact<PcieType>& type = device.config.pcie_type;
  if (type.absent()) return device.IsBridge() ? "conventional PCI bridge" : "conventional device";
  if (!type.known()) return device.IsBridge() ? "bridge" : "function";
  switch (type.value()) {
    case PcieType::kRootPort:
      return "root port";
    case PcieType::kUpstream:
      return "switch upstream port";
    case PcieType::kDownstream:
      return "switch downstream port";
    case PcieType::kPcieToPci:
    case PcieType::kPciToPcie:
      return "PCIe-to-PCI bridge";
    case PcieType::kRootComplexEndpoint:
      return "root-complex endpoint";
    default:
      return "endpoint";
  }
}

std::string ExplainMerge(const NodeFacts& facts, const Merge& merge) {
  const PciDevice* const culprit = FindDevice(facts, merge.culprit);
  const std::string port =
      culprit == nullptr ? "port"
                         : absl::StrFormat("%s %s", PortWords(*culprit), merge.culprit.ToString());
  switch (merge.kind) {
    case Merge::Kind::kPort:
      return absl::StrFormat("%s is with %s: the %s above it does not isolate (%s)",
                             merge.device.ToString(), merge.with.ToString(), port,
                             Describe(merge.acs));
    case Merge::Kind::kFunction:
      return absl::StrFormat("%s is with %s: functions of one slot that reach each other (%s)",
                             merge.device.ToString(), merge.with.ToString(), Describe(merge.acs));
    case Merge::Kind::kAlias:
      return absl::StrFormat("%s is with %s: behind the %s all requests carry one id",
                             merge.device.ToString(), merge.with.ToString(), port);
  }
  return "";
}

std::string VerdictWords(const GroupPlan& group, bool ready) {
  if (IsPhysical(group)) return VfVerdictWords(group);
  if (group.makes_mdevs) {
    return group.verdict == Verdict::kBind
               ? "stays with its driver; `vfio-agent bind` would make mediated devices on it"
               : "stays with its driver, which has made the mediated devices that are wanted";
  }
  if (TakesVgpuAway(group) && group.verdict == Verdict::kBind) {
    return "stays with its driver; `vfio-agent bind` would take its vGPU type away: more than "
           "vgpu[].types asks for";
  }
  if (!group.vgpu_type.empty() && group.verdict == Verdict::kBind) {
    return absl::StrFormat(
        "stays with its driver; `vfio-agent bind` would give it the vGPU type %s", group.vgpu_type);
  }
  if (!group.vgpu_type.empty() && group.verdict == Verdict::kBound) {
    return absl::StrFormat("stays with its driver; a vGPU of type %s, for guests as it is",
                           group.vgpu_type);
  }
  switch (group.verdict) {
    case Verdict::kBind:
      return "can be given away; `vfio-agent bind` would bind it";
    case Verdict::kBound:
      return ready ? "bound and ready for guests" : "bound";
    case Verdict::kRefused:
      return "cannot be given away";
    case Verdict::kUnselected:
      return "not selected by the configuration";
  }
  return "";
}

// A service that the capability lacks counts as hard-wired, so it has no sign.
std::string ControlBits(const PciDevice& device) {
  if (!device.config.acs.known()) return "";
  const Acs& acs = device.config.acs.value();
  std::string text;
  for (uint16_t bit = 1; bit <= 0x40; bit = static_cast<uint16_t>(bit << 1)) {
    if ((kRequiredAcs & bit) == 0) continue;
    const char* const sign =
        (acs.capability & bit) == 0 ? " n/a" : ((acs.control & bit) == 0 ? "-" : "+");
    text += absl::StrFormat("%s%s%s", text.empty() ? "" : " ", AcsBits(bit), sign);
  }
  return text;
}

}  // namespace vfio_agent
