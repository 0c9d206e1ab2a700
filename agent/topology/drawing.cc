#include "agent/topology/drawing.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "agent/kubevirt/kubevirt.h"
#include "iommu/isolation/isolation.h"

namespace vfio_agent {
namespace {

// The child with that title, made where there is none.
Drawn& ChildOf(Drawn& parent, Drawn child) {
  const auto found = std::ranges::find(parent.children, child.title, &Drawn::title);
  if (found != parent.children.end()) return *found;
  parent.children.push_back(std::move(child));
  return parent.children.back();
}

bool IsOpen(const NodeFacts& facts, const PciAddress& port) {
  const PciDevice* const device = FindDevice(facts, port);
  if (device == nullptr) return false;
  const AcsState acs = CheckAcs(*device);
  return acs.known() && !acs.Isolates();
}

Drawn DrawHop(const NodeFacts& facts, const Hop& hop) {
  const PciDevice* const port = FindDevice(facts, hop.entry);
  Drawn drawn{.kind = hop.entry == hop.exit ? Drawn::Kind::kPort : Drawn::Kind::kSwitch,
              .title = hop.entry.ToString()};
  drawn.detail = drawn.kind == Drawn::Kind::kSwitch ? "switch" : "port";
  if (port != nullptr) {
    drawn.detail += absl::StrFormat(" %04x:%04x", port->vendor, port->device);
  }
  return drawn;
}

Drawn DrawDevice(const TopologyDevice& device) {
  Drawn drawn{.kind = Drawn::Kind::kDevice,
              .title = absl::StrFormat("%s  %s", device.name, device.address.ToString()),
              .detail = device.model.empty() ? device.id : device.model,
              .verdict = device.verdict};
  // First: a long name is cut at its end.
  if (device.group) drawn.detail = absl::StrFormat("group %d, %s", *device.group, drawn.detail);
  if (device.unsafe) drawn.detail = "UNSAFE, " + drawn.detail;
  if (device.host) drawn.detail = "host, " + drawn.detail;
  return drawn;
}

void Draw(const NodeFacts& facts, const TopologyDevice& described, Drawn& numa) {
  const PciDevice& device = *FindDevice(facts, described.address);
  Drawn* parent =
      &ChildOf(numa, {.kind = Drawn::Kind::kHostBridge,
                      .title = device.root.empty() ? "place not told" : Printable(device.root)});
  std::string by;
  bool open = false;
  for (const Hop& hop : HopsTo(facts, device)) {
    Drawn& drawn = ChildOf(*parent, DrawHop(facts, hop));
    if (drawn.by.empty()) drawn.by = by;
    drawn.open = open;
    by = hop.entry == hop.exit ? "" : hop.exit.ToString();
    open = IsOpen(facts, hop.exit);
    parent = &drawn;
  }
  Drawn leaf = DrawDevice(described);
  leaf.by = by;
  leaf.open = open;
  parent->children.push_back(std::move(leaf));
}

}  // namespace

std::vector<Drawn> DrawTopology(const Topology& topology, const NodeFacts& facts) {
  std::map<int, Drawn> nodes;
  Drawn unknown{.title = "NUMA node not told"};
  for (const TopologyDevice& device : topology.devices) {
    if (!device.numa_node) {
      Draw(facts, device, unknown);
      continue;
    }
    Drawn& node = nodes[*device.numa_node];
    node.title = absl::StrFormat("NUMA node %d", *device.numa_node);
    Draw(facts, device, node);
  }
  std::vector<Drawn> drawn;
  for (auto& entry : nodes) drawn.push_back(std::move(entry.second));
  if (!unknown.children.empty()) drawn.push_back(std::move(unknown));
  // Devices came by kind; on the board they are by address.
  for (Drawn& node : drawn) std::ranges::sort(node.children, {}, &Drawn::title);
  return drawn;
}

const std::vector<VerdictColour>& VerdictColours() {
  static const std::vector<VerdictColour> colours = {
      {Verdict::kBind, "#2f6fd0", "can be given away"},
      {Verdict::kBound, "#2e7d4f", "bound, ready for guests"},
      {Verdict::kRefused, "#b5382a", "selected and refused"},
      {Verdict::kUnselected, "#6b7280", "not selected"},
  };
  return colours;
}

const char* ColourOf(Verdict verdict) {
  return std::ranges::find(VerdictColours(), verdict, &VerdictColour::verdict)->colour;
}

}  // namespace vfio_agent
