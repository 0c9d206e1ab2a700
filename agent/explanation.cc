#include "agent/explanation.h"

#include "absl/strings/str_format.h"
#include "agent/commands.h"
#include "agent/pci_class.h"

namespace vfio_agent {
namespace {

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

std::string PathLine(const PciDevice& device, size_t depth) {
  return absl::StrFormat("    %s%s  %04x:%04x  %s: %s\n", std::string(2 * depth, ' '),
                         device.address.ToString(), device.vendor, device.device, PortWords(device),
                         Describe(CheckAcs(device)));
}

// From the host bridge down to the device, each port with its ACS state.
std::string PathText(const Picture& picture, const PciDevice& device) {
  std::string text =
      absl::StrFormat("  path of %s\n    %s\n", device.address.ToString(),
                      device.root.empty() ? "(this tree tells no parents)" : device.root);
  size_t depth = 1;
  for (const PciAddress& address : device.path) {
    if (const PciDevice* port = FindDevice(picture.facts, address)) {
      text += PathLine(*port, depth++);
    }
  }
  return text + PathLine(device, depth);
}

std::string MembersText(const Picture& picture, const GroupPlan& group) {
  std::string text = "  members\n";
  for (const Member& member : group.members) {
    const PciDevice& device = *FindDevice(picture.facts, member.address);
    std::string model = ModelOf(picture, device);
    if (model.empty()) model = std::string(ClassWords(device.class_code));
    text += absl::StrFormat("    %s  %-9s  driver %s%s  %s\n", member.address.ToString(),
                            Name(member.role), member.driver.value_or("(none)"),
                            member.to.empty() ? "" : " -> " + member.to, model);
    for (const std::string& error : device.errors) {
      text += absl::StrFormat("      could not be read: %s\n", error);
    }
  }
  return text;
}

std::string MergesText(const Picture& picture, const Grouping& grouping, const GroupPlan& group) {
  if (!group.group) return "";
  std::string text;
  for (const Merge& merge : grouping.merges) {
    const PciDevice* const device = FindDevice(picture.facts, merge.device);
    const PciDevice* const with = FindDevice(picture.facts, merge.with);
    if (device == nullptr || with == nullptr || device->group != group.group) continue;
    if (with->group != group.group) continue;
    text += "    " + ExplainMerge(picture, merge) + "\n";
  }
  for (const PciAddress& address : grouping.unknown) {
    const PciDevice* const device = FindDevice(picture.facts, address);
    if (device == nullptr || device->group != group.group || device->IsBridge()) continue;
    text += absl::StrFormat(
        "    %s: ACS on its way to the root is unknown (needs "
        "CAP_SYS_ADMIN)\n",
        address.ToString());
  }
  if (text.empty() && group.members.size() > 1) {
    text = "    by the kernel; the ports' registers do not say why\n";
  }
  return text.empty() ? text : "  why together\n" + text;
}

std::string VerdictText(const GroupPlan& group) {
  switch (group.verdict) {
    case Verdict::kBind:
      return "can be given away; `vfio-agent bind` would bind it";
    case Verdict::kBound:
      return "bound and ready for guests";
    case Verdict::kRefused:
      return "cannot be given away";
    case Verdict::kUnselected:
      return "not selected by the configuration";
  }
  return "";
}

}  // namespace

std::string ExplainMerge(const Picture& picture, const Merge& merge) {
  const PciDevice* const culprit = FindDevice(picture.facts, merge.culprit);
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

std::string ExplainGroup(const Picture& picture, const Grouping& grouping, const GroupPlan& group) {
  std::string text = absl::StrFormat(
      "%s%s%s: %s\n", group.group ? absl::StrFormat("group %d", *group.group) : "no group",
      group.resource.empty() ? "" : ", ", group.resource, VerdictText(group));
  text += MembersText(picture, group);
  text += MergesText(picture, grouping, group);
  for (const Member& member : group.members) {
    if (member.role != Role::kPrimary && group.members.size() > 1) continue;
    text += PathText(picture, *FindDevice(picture.facts, member.address));
  }
  if (!group.refusals.empty()) text += "  refused\n";
  for (const Refusal& refusal : group.refusals) text += RefusalText(refusal, "    ");
  if (!group.warnings.empty()) text += "  warnings\n";
  for (const Refusal& warning : group.warnings) text += RefusalText(warning, "    ");
  if (!group.actions.empty()) text += "  commands\n";
  for (const Action& action : group.actions) text += "    " + ToShell(action) + "\n";
  return text;
}

}  // namespace vfio_agent
