#include "iommu/isolation/isolation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "iommu/isolation/acs_quirks.h"

namespace vfio_agent {
namespace {

constexpr std::array<std::pair<uint16_t, const char*>, 7> kBitNames = {{
    {0x01, "SrcValid"},
    {0x02, "TransBlk"},
    {0x04, "ReqRedir"},
    {0x08, "CmpltRedir"},
    {0x10, "UpstreamFwd"},
    {0x20, "EgressCtrl"},
    {0x40, "DirectTrans"},
}};

// Ports must have ACS; endpoints only where several functions share a slot (PCIe base
// specification, 6.12.1; drivers/pci/pci.c, pci_acs_enabled()).
bool NeedsAcs(const PciDevice& device, PcieType type) {
  switch (type) {
    case PcieType::kRootPort:
    case PcieType::kDownstream:
      return true;
    case PcieType::kEndpoint:
    case PcieType::kLegacyEndpoint:
    case PcieType::kUpstream:
    case PcieType::kRootComplexEndpoint:
      return device.config.multifunction;
    default:
      return false;
  }
}

// Conventional PCI, and bridges to or from it: anybody on the bus can be reached.
bool NeverIsolates(const Fact<PcieType>& type) {
  return type.absent() || type.is(PcieType::kPcieToPci) || type.is(PcieType::kPciToPcie) ||
         type.is(PcieType::kRootComplexEventCollector);
}

AcsState ByRegisters(const Acs& acs) {
  // A service that the capability lacks counts as hard-wired (pci_acs_flags_enabled()).
  const auto wanted = static_cast<uint16_t>(kRequiredAcs & acs.capability);
  const auto missing = static_cast<uint16_t>(wanted & ~acs.control);
  return {.verdict = missing == 0 ? AcsVerdict::kEnabled : AcsVerdict::kOff, .missing = missing};
}

// Bridges whose requests carry their own id instead of the device's
// (drivers/pci/search.c, pci_for_each_dma_alias()).
bool Aliases(const PciDevice& bridge) {
  const Fact<PcieType>& type = bridge.config.pcie_type;
  return type.absent() || type.is(PcieType::kPcieToPci) || type.is(PcieType::kPciToPcie);
}

class Computation {
 public:
  explicit Computation(const NodeFacts& facts) : facts_(facts) {
    for (const PciDevice& device : facts.devices) result_.root[device.address] = device.address;
  }

  Grouping Run() {
    for (const PciDevice& device : facts_.devices) Place(device);
    for (auto& entry : result_.root) entry.second = Find(entry.first);
    return std::move(result_);
  }

 private:
  PciAddress Find(PciAddress address) const {
    for (;;) {
      const PciAddress above = result_.root.at(address);
      if (above == address) return address;
      address = above;
    }
  }

  void Join(const Merge& merge) {
    if (!result_.root.contains(merge.with)) return;
    result_.root[Find(merge.device)] = Find(merge.with);
    result_.merges.push_back(merge);
  }

  std::vector<const PciDevice*> Bridges(const PciDevice& device) const {
    std::vector<const PciDevice*> bridges;  // nearest first
    for (auto it = device.path.rbegin(); it != device.path.rend(); ++it) {
      if (const PciDevice* bridge = FindDevice(facts_, *it)) bridges.push_back(bridge);
    }
    return bridges;
  }

  // The kernel places a device with the first bridge that aliases it, else with the port above
  // it unless that and all further ports isolate, else with the functions of its slot.
  void Place(const PciDevice& device) {
    if (device.root.empty()) return Unknown(device);
    const std::vector<const PciDevice*> bridges = Bridges(device);
    for (const PciDevice* bridge : bridges) {
      if (bridge->config.pcie_type.unknown()) return Unknown(device);
      if (!Aliases(*bridge)) continue;
      return Join({device.address, bridge->address, Merge::Kind::kAlias, bridge->address,
                   CheckAcs(*bridge)});
    }
    for (const PciDevice* bridge : bridges) {
      const AcsState acs = CheckAcs(*bridge);
      if (!acs.known()) return Unknown(device);
      if (acs.Isolates()) continue;
      return Join(
          {device.address, bridges.front()->address, Merge::Kind::kPort, bridge->address, acs});
    }
    PlaceWithSiblings(device);
  }

  void PlaceWithSiblings(const PciDevice& device) {
    if (!device.config.multifunction) return;
    const AcsState acs = CheckAcs(device);
    if (!acs.known()) return Unknown(device);
    if (acs.Isolates()) return;
    PciAddress first = device.address;
    first.function = 0;
    auto other = std::ranges::lower_bound(facts_.devices, first, {}, &PciDevice::address);
    for (; other->address < device.address; ++other) {
      const AcsState others = CheckAcs(*other);
      if (others.known() && !others.Isolates()) {
        return Join({device.address, other->address, Merge::Kind::kFunction, device.address, acs});
      }
    }
  }

  void Unknown(const PciDevice& device) { result_.unknown.push_back(device.address); }

  const NodeFacts& facts_;
  Grouping result_;
};

}  // namespace

AcsState CheckAcs(const PciDevice& device) {
  const Fact<PcieType>& type = device.config.pcie_type;
  if (type.unknown()) return {};
  if (KernelVouchesFor(device)) return {.verdict = AcsVerdict::kQuirk};
  if (NeverIsolates(type)) return {.verdict = AcsVerdict::kNoAcs, .missing = kRequiredAcs};
  if (!NeedsAcs(device, type.value())) return {.verdict = AcsVerdict::kNotNeeded};
  const Fact<Acs>& acs = device.config.acs;
  if (acs.unknown()) return {};
  if (acs.absent()) return {.verdict = AcsVerdict::kNoAcs, .missing = kRequiredAcs};
  return ByRegisters(acs.value());
}

std::string AcsBits(uint16_t mask) {
  std::string text;
  for (const auto& [bit, name] : kBitNames) {
    if ((mask & bit) == 0) continue;
    if (!text.empty()) text += ' ';
    text += name;
  }
  return text;
}

std::string Describe(const AcsState& state) {
  switch (state.verdict) {
    case AcsVerdict::kEnabled:
      return "ACS on: isolates";
    case AcsVerdict::kNotNeeded:
      return "needs no ACS";
    case AcsVerdict::kQuirk:
      return "isolates by a quirk that the kernel knows";
    case AcsVerdict::kNoAcs:
      return absl::StrFormat("no ACS capability: %s missing", AcsBits(state.missing));
    case AcsVerdict::kOff:
      return absl::StrFormat("ACS switched off: %s missing", AcsBits(state.missing));
    case AcsVerdict::kUnknown:
      return "ACS unknown: config space not readable";
  }
  return "";
}

Grouping ComputeGrouping(const NodeFacts& facts) { return Computation(facts).Run(); }

std::vector<Merge> FindFinerGroups(const NodeFacts& facts, const Grouping& grouping) {
  std::vector<Merge> finer;
  for (const Merge& merge : grouping.merges) {
    const PciDevice* const device = FindDevice(facts, merge.device);
    const PciDevice* const with = FindDevice(facts, merge.with);
    if (device == nullptr || with == nullptr || !device->group || !with->group) continue;
    if (facts.groups.at(*device->group).noiommu) continue;
    if (*device->group != *with->group) finer.push_back(merge);
  }
  return finer;
}

}  // namespace vfio_agent
