#include "agent/topology/guest.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Model = GuestController::Model;

// On q35 slot 0 is the machine's own, 1 the usual place of a display, and 1b, 1d to 1f of the
// chipset; libvirt takes the low ones first.
constexpr int kExpanderSlot = 0x10;
constexpr int kMostExpanders = 8;
constexpr int kRootPortSlot = 0x08;
constexpr int kMostRootPorts = 64;  // eight functions in each of eight slots
constexpr int kSlots = 32;
// Left to the machine's own devices below bus 0.
constexpr int kLeastBus = 32;

// All functions of one slot of the host: one slot of the guest.
struct Card {
  std::vector<const PciDevice*> functions;
  std::vector<Hop> hops;
};
using Cards = std::vector<const Card*>;

// In parts of those that are the same; in order of their first cards.
std::vector<Cards> Apart(const Cards& cards,
                         const std::function<bool(const Card*, const Card*)>& same) {
  std::vector<Cards> parts;
  for (const Card* card : cards) {
    const auto part =
        std::ranges::find_if(parts, [&](const Cards& known) { return same(known.front(), card); });
    if (part == parts.end()) {
      parts.push_back({card});
    } else {
      part->push_back(card);
    }
  }
  return parts;
}

absl::Status TooMany(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("a guest has no room for that many %s: name fewer devices", what));
}

class Builder {
 public:
  Builder(const NodeFacts& facts, const std::vector<NumaNode>& numa) : facts_(facts), numa_(numa) {}

  absl::StatusOr<GuestLayout> Run(const std::vector<PciAddress>& devices) {
    const std::vector<Card> cards = CardsOf(devices);
    std::map<int, Cards> nodes;
    Cards unknown;
    for (const Card& card : cards) {
      const std::optional<int>& node = card.functions.front()->numa_node;
      (node ? nodes[*node] : unknown).push_back(&card);
    }
    if (nodes.size() > kMostExpanders) return TooMany("NUMA nodes");
    for (const auto& [node, below] : nodes) RETURN_IF_ERROR(PlaceNode(node, below));
    RETURN_IF_ERROR(PlaceRootPorts(unknown, 0));
    RETURN_IF_ERROR(NumberBuses());
    return std::move(layout_);
  }

 private:
  std::vector<Card> CardsOf(const std::vector<PciAddress>& devices) {
    std::vector<Card> cards;
    for (const PciAddress& address : devices) {
      const PciDevice* const device = FindDevice(facts_, address);
      if (device == nullptr) continue;
      for (const Bar& bar : device->bars) layout_.bar_bytes += bar.size_bytes;
      if (cards.empty() || !SameSlot(cards.back().functions.front()->address, address)) {
        cards.push_back({.hops = HopsTo(facts_, *device)});
      }
      cards.back().functions.push_back(device);
    }
    return cards;
  }

  int Add(Model model, int bus, int slot, std::string why) {
    const int index = static_cast<int>(layout_.controllers.size()) + 1;
    layout_.controllers.push_back(
        {.index = index, .model = model, .bus = bus, .slot = slot, .why = std::move(why)});
    return index;
  }

  absl::Status PlaceNode(int node, const Cards& cards) {
    const int cell = static_cast<int>(layout_.cells.size());
    const auto found = std::ranges::find(numa_, node, &NumaNode::number);
    layout_.cells.push_back(
        {.cell = cell, .host_node = node, .cpus = found == numa_.end() ? "" : found->cpus});
    const int bus = Add(Model::kExpander, 0, kExpanderSlot + cell,
                        absl::StrFormat("NUMA node %d of the host", node));
    layout_.controllers.back().cell = cell;
    return PlaceRootPorts(cards, bus);
  }

  // What is below one root port of the host is below one of the guest.
  absl::Status PlaceRootPorts(const Cards& cards, int bus) {
    const auto same = [](const Card* a, const Card* b) {
      return !a->hops.empty() && !b->hops.empty() && a->hops.front().entry == b->hops.front().entry;
    };
    int count = 0;
    for (const Cards& part : Apart(cards, same)) {
      if (count >= (bus == 0 ? kMostRootPorts : kSlots)) return TooMany("root ports");
      const auto& hops = part.front()->hops;
      const std::string why =
          hops.empty() ? "" : "root port " + hops.front().entry.ToString() + " of the host";
      const int port =
          Add(Model::kRootPort, bus, bus == 0 ? kRootPortSlot + count / 8 : count, why);
      if (bus == 0) layout_.controllers.back().function = count % 8;
      ++count;
      RETURN_IF_ERROR(Branch(part, 0, port));
    }
    return absl::OkStatus();
  }

  // `cards` share their first `depth` hops; the bus has one slot.
  absl::Status Branch(const Cards& cards, size_t depth, int bus) {
    if (cards.size() == 1) return PlaceCard(*cards.front(), bus);
    const auto has_hop = [depth](const Card* card) { return card->hops.size() > depth; };
    const auto same = [&](const Card* a, const Card* b) {
      return has_hop(a) && has_hop(b) && a->hops[depth] == b->hops[depth];
    };
    const std::vector<Cards> parts = Apart(cards, same);
    // A switch with one way to all of them keeps nothing apart: it is left out.
    if (parts.size() == 1) return Branch(cards, depth + 1, bus);
    if (parts.size() > kSlots) return TooMany("ports of one switch");
    const std::string why =
        has_hop(cards.front())
            ? "switch " + cards.front()->hops[depth].entry.ToString() + " of the host"
            : "";
    const int upstream = Add(Model::kUpstream, bus, 0, why);
    for (size_t i = 0; i < parts.size(); ++i) {
      const int port = Add(Model::kDownstream, upstream, static_cast<int>(i), "");
      RETURN_IF_ERROR(Branch(parts[i], depth + 1, port));
    }
    return absl::OkStatus();
  }

  absl::Status PlaceCard(const Card& card, int bus) {
    for (size_t i = 0; i < card.functions.size(); ++i) {
      layout_.functions.push_back({.host = card.functions[i]->address,
                                   .bus = bus,
                                   .function = static_cast<int>(i),
                                   .multifunction = i == 0 && card.functions.size() > 1});
    }
    return absl::OkStatus();
  }

  // The firmware numbers the buses below an expander from its own on, and has to end below the next
  // expander's: each gets exactly what it needs, from the top.
  absl::Status NumberBuses() {
    int free = 256;
    for (size_t end = layout_.controllers.size(), i = end; i-- > 0;) {
      if (layout_.controllers[i].model != Model::kExpander) continue;
      free -= BusesBelow(i, end);
      end = i;
      layout_.controllers[i].bus_number = free;
    }
    return free < kLeastBus ? TooMany("buses") : absl::OkStatus();
  }

  // The expander at `first` and the ports after it that hang below it.
  int BusesBelow(size_t first, size_t end) const {
    std::vector<int> below = {layout_.controllers[first].index};
    for (size_t i = first + 1; i < end; ++i) {
      const GuestController& port = layout_.controllers[i];
      if (std::ranges::count(below, port.bus) > 0) below.push_back(port.index);
    }
    return static_cast<int>(below.size());
  }

  const NodeFacts& facts_;
  const std::vector<NumaNode>& numa_;
  GuestLayout layout_;
};

// Without a fabric manager such a guest may be laid out well and have no CUDA.
void AddBoardNotes(const Topology& topology, const std::vector<PciAddress>& devices,
                   std::vector<std::string>& notes) {
  for (const NvlinkBoard& board : topology.boards) {
    const bool any = std::ranges::any_of(board.gpus, [&devices](const PciAddress& gpu) {
      return std::ranges::count(devices, gpu) > 0;
    });
    if (!any) continue;
    for (const std::string& line : WhatItMeans(board)) {
      notes.push_back(absl::StrFormat("NVLink board %s: %s", board.family, line));
    }
  }
}

}  // namespace

absl::StatusOr<GuestLayout> PlanGuest(const NodeFacts& facts, const std::vector<NumaNode>& numa,
                                      std::vector<PciAddress> devices) {
  std::ranges::sort(devices);
  return Builder(facts, numa).Run(devices);
}

std::vector<PciAddress> GuestDevices(const Topology& topology, const Plan& plan, bool all) {
  std::vector<PciAddress> devices;
  for (const TopologyDevice& device : topology.devices) {
    if (all || !device.resource.empty()) devices.push_back(device.address);
  }
  const std::vector<PciAddress> named = devices;
  for (const GroupPlan& group : plan.groups) {
    for (const Member& member : group.members) {
      const bool moves = member.role == Role::kCompanion || member.role == Role::kAllowed;
      const auto same = [&member](const PciAddress& a) { return SameSlot(a, member.address); };
      if (moves && std::ranges::count(devices, member.address) == 0 &&
          std::ranges::any_of(named, same)) {
        devices.push_back(member.address);
      }
    }
  }
  std::ranges::sort(devices);
  return devices;
}

std::vector<std::string> GuestNotes(const Topology& topology,
                                    const std::vector<PciAddress>& devices) {
  std::vector<std::string> notes;
  const auto given = [&devices](const TopologyDevice& device) {
    return std::ranges::count(devices, device.address) > 0;
  };
  std::vector<std::string> refused, unselected, placeless;
  for (const TopologyDevice& device : topology.devices) {
    if (!given(device)) continue;
    const std::string name = device.address.ToString();
    if (device.verdict == Verdict::kRefused) refused.push_back(name);
    if (device.resource.empty()) unselected.push_back(name);
    if (!device.numa_node) placeless.push_back(name);
  }
  if (!refused.empty()) {
    notes.push_back(absl::StrFormat("refused as it is now (see `vfio-agent explain`): %s",
                                    absl::StrJoin(refused, ", ")));
  }
  if (!unselected.empty()) {
    notes.push_back(
        absl::StrFormat("not selected by the configuration, so bound to no vfio driver "
                        "by this agent: %s",
                        absl::StrJoin(unselected, ", ")));
  }
  if (!placeless.empty()) {
    notes.push_back(absl::StrFormat("the kernel tells no NUMA node, so these are in no cell: %s",
                                    absl::StrJoin(placeless, ", ")));
  }
  for (const RailPair& pair : topology.pairs) {
    const TopologyDevice& gpu = topology.devices[pair.gpu];
    const TopologyDevice& nic = topology.devices[pair.nic];
    if (!given(gpu) || given(nic)) continue;
    notes.push_back(
        absl::StrFormat("%s (%s) is below the same switch as %s (%s) and stays with "
                        "the host: name both addresses to have the pair",
                        nic.name, nic.address.ToString(), gpu.name, gpu.address.ToString()));
  }
  AddBoardNotes(topology, devices, notes);
  return notes;
}

}  // namespace vfio_agent
