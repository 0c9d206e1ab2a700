#include "iommu/isolation/relocation.h"

#include <algorithm>

#include "iommu/distance/nvlink.h"

namespace vfio_agent {
namespace {

bool IsUnder(const PciDevice& device, const PciAddress& bridge) {
  return std::ranges::count(device.path, bridge) > 0;
}

bool IsSlot(const PciDevice& port) {
  return port.config.pcie_type.is(PcieType::kRootPort) ||
         port.config.pcie_type.is(PcieType::kDownstream);
}

// Nobody else's devices are below a switch that is on the card.
bool IsAllOf(const NodeFacts& facts, const PciAddress& bridge, uint16_t vendor) {
  return std::ranges::all_of(facts.devices, [&](const PciDevice& device) {
    return device.vendor == vendor || (device.address != bridge && !IsUnder(device, bridge));
  });
}

// Where the card begins in its path: a switch of the card's own maker that has nothing else below
// it is on the card (GPUs of AMD and Intel have one).
size_t TopOfCard(const NodeFacts& facts, const PciDevice& device) {
  size_t top = device.path.size();
  for (size_t i = device.path.size(); i-- > 0;) {
    const PciDevice* const bridge = FindDevice(facts, device.path[i]);
    if (bridge == nullptr || !IsAllOf(facts, bridge->address, device.vendor)) break;
    if (bridge->config.pcie_type.is(PcieType::kUpstream)) top = i;
  }
  return top;
}

std::vector<PciAddress> CardOf(const NodeFacts& facts, const PciDevice& device, size_t top) {
  std::vector<PciAddress> card;
  for (const PciDevice& other : facts.devices) {
    const bool on_card = top < device.path.size()
                             ? other.address == device.path[top] || IsUnder(other, device.path[top])
                             : SameSlot(other.address, device.address);
    if (on_card) card.push_back(other.address);
  }
  return card;
}

std::string WhyFixed(const NodeFacts& facts, const PciDevice& device, size_t top) {
  if (device.IsBridge()) return "it is a bridge";
  if (device.IsVf()) return "a virtual function is where its physical function is";
  if (IsNvlinkModule(device)) return "it is a module of an NVLink board, not a card";
  if (device.removable) return "it is plugged in from outside the machine";
  if (device.root.empty()) return "this tree does not tell its place";
  if (top == 0) {
    return "it is on a root bus, below no port: part of the processor or of the chipset, or put "
           "there by a hypervisor";
  }
  const PciDevice* const slot = FindDevice(facts, device.path[top - 1]);
  if (slot == nullptr || slot->config.pcie_type.unknown()) {
    return "the ports' registers are not readable";
  }
  return IsSlot(*slot) ? "" : "it is no PCI Express card";
}

// What is below `port`: nothing, or endpoints of one slot; nullopt for a switch or a bridge.
std::optional<std::vector<PciAddress>> OccupantsOf(const NodeFacts& facts, const PciDevice& port) {
  std::vector<PciAddress> occupants;
  for (const PciDevice& device : facts.devices) {
    if (!IsUnder(device, port.address)) continue;
    if (device.IsBridge()) return std::nullopt;
    if (!device.IsVf()) occupants.push_back(device.address);
  }
  return occupants;
}

bool Contains(const std::vector<PciAddress>& list, const PciAddress& address) {
  return std::ranges::count(list, address) > 0;
}

// Hangs `device` below `port`, with what was above it from `keep` on.
void Hang(const PciDevice& port, size_t keep, PciDevice& device) {
  std::vector<PciAddress> path = port.path;
  path.push_back(port.address);
  path.insert(path.end(), device.path.begin() + static_cast<std::ptrdiff_t>(keep),
              device.path.end());
  device.path = std::move(path);
  device.parent = device.path.back();
  device.root = port.root;
}

// The facts with the card, which is in `slot` now, below `port`, and with what is there below
// `slot`.
NodeFacts Exchanged(const NodeFacts& facts, const Relocation& relocation, const PciDevice& port,
                    const PciDevice& slot) {
  NodeFacts changed = facts;
  for (PciDevice& device : changed.devices) {
    if (Contains(relocation.card, device.address)) {
      Hang(port, slot.path.size() + 1, device);
    } else if (IsUnder(device, port.address)) {
      Hang(slot, port.path.size() + 1, device);
    }
  }
  return changed;
}

// Only what the rule looks at: the facts are copied for each port.
NodeFacts Bare(const NodeFacts& facts) {
  NodeFacts bare;
  for (const PciDevice& device : facts.devices) {
    PciDevice& copy = bare.devices.emplace_back();
    copy.address = device.address;
    copy.vendor = device.vendor;
    copy.device = device.device;
    copy.class_code = device.class_code;
    copy.path = device.path;
    copy.parent = device.parent;
    copy.root = device.root;
    copy.physfn = device.physfn;
    copy.config = device.config;
  }
  return bare;
}

Move Try(const NodeFacts& facts, const Relocation& relocation, const PciDevice& device,
         const PciDevice& port) {
  Move move{.port = port.address};
  const PciDevice& slot = *FindDevice(facts, device.path[TopOfCard(facts, device) - 1]);
  const auto company = ComputedCompany(Exchanged(facts, relocation, port, slot), device.address);
  if (!company) return move;
  for (const PciAddress& address : *company) {
    if (!Contains(relocation.card, address)) move.with.push_back(address);
  }
  move.outcome = move.with.empty() ? Move::Outcome::kAlone : Move::Outcome::kShared;
  return move;
}

}  // namespace

std::optional<std::vector<PciAddress>> ComputedCompany(const NodeFacts& facts,
                                                       const PciAddress& address) {
  const Grouping grouping = ComputeGrouping(facts);
  const auto found = grouping.root.find(address);
  if (found == grouping.root.end() || Contains(grouping.unknown, address)) return std::nullopt;
  std::vector<PciAddress> company;
  for (const PciDevice& device : facts.devices) {
    if (!device.IsBridge() && grouping.root.at(device.address) == found->second) {
      company.push_back(device.address);
    }
  }
  return company;
}

NodeFacts WithAcsOn(NodeFacts facts) {
  for (PciDevice& device : facts.devices) {
    if (!device.config.acs.known()) continue;
    Acs acs = device.config.acs.value();
    acs.control = static_cast<uint16_t>(acs.control | (acs.capability & kRequiredAcs));
    device.config.acs = Fact<Acs>(acs);
  }
  return facts;
}

Relocation SimulateMoves(const NodeFacts& facts, const PciDevice& device) {
  const size_t top = TopOfCard(facts, device);
  Relocation relocation{.fixed = WhyFixed(facts, device, top)};
  if (!relocation.fixed.empty()) return relocation;
  relocation.card = CardOf(facts, device, top);
  const NodeFacts bare = Bare(facts);
  for (const PciDevice& port : bare.devices) {
    if (!IsSlot(port) || IsUnder(device, port.address) || Contains(relocation.card, port.address)) {
      continue;
    }
    const auto occupants = OccupantsOf(bare, port);
    if (!occupants) continue;
    relocation.moves.push_back(Try(bare, relocation, device, port));
    relocation.moves.back().occupants = *occupants;
  }
  return relocation;
}

}  // namespace vfio_agent
