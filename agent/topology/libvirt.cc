#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/topology/guest.h"
#include "agent/topology/markup.h"
#include "agent/usage/help_text.h"

namespace vfio_agent {
namespace {

using Model = GuestController::Model;

// What the example gives each cell; whoever uses it writes their own.
constexpr int kCellCpus = 8;
constexpr int kCellGib = 32;

constexpr std::array<const char*, 4> kModels = {"pcie-expander-bus", "pcie-root-port",
                                                "pcie-switch-upstream-port",
                                                "pcie-switch-downstream-port"};

constexpr size_t kColumns = 100;

std::string Comment(const std::string& indent, const std::string& text) {
  if (text.empty()) return "";
  const size_t marks = std::string_view("<!--  -->").size();
  return absl::StrFormat(
      "%s<!-- %s -->\n", indent,
      absl::StrJoin(Wrap(XmlComment(text), kColumns - marks - indent.size()), "\n     " + indent));
}

std::string AddressText(int bus, int slot, int function, bool multifunction) {
  return absl::StrFormat(
      "<address type='pci' domain='0x0000' bus='0x%02x' slot='0x%02x' function='0x%x'%s/>\n", bus,
      slot, function, multifunction ? " multifunction='on'" : "");
}

std::string ControllerText(const GuestLayout& layout, const GuestController& port) {
  std::string text = Comment("    ", port.why);
  text += absl::StrFormat("    <controller type='pci' index='%d' model='%s'>\n", port.index,
                          kModels[static_cast<size_t>(port.model)]);
  if (port.model == Model::kExpander) {
    text += absl::StrFormat("      <target busNr='%d'>\n        <node>%d</node>\n      </target>\n",
                            port.bus_number, port.cell.value_or(0));
  }
  // Functions of one slot: libvirt wants to hear of it at the first.
  const bool shared = port.function == 0 &&
                      std::ranges::any_of(layout.controllers, [&port](const GuestController& c) {
                        return c.bus == port.bus && c.slot == port.slot && c.function != 0;
                      });
  text += "      " + AddressText(port.bus, port.slot, port.function, shared);
  return text + "    </controller>\n";
}

std::string HostdevText(const Topology& topology, const GuestFunction& function) {
  const auto named = std::ranges::find(topology.devices, function.host, &TopologyDevice::address);
  std::string text =
      Comment("    ", named == topology.devices.end() ? "moves with its slot"
                                                      : named->name + " " + named->model);
  // managed='no': the agent has bound it, and libvirt is not to give it back to a host driver.
  text += "    <hostdev mode='subsystem' type='pci' managed='no'>\n";
  text += absl::StrFormat(
      "      <source>\n"
      "        <address domain='0x%04x' bus='0x%02x' slot='0x%02x' function='0x%x'/>\n"
      "      </source>\n",
      function.host.domain, function.host.bus, function.host.device, function.host.function);
  text += "      " + AddressText(function.bus, 0, function.function, function.multifunction);
  return text + "    </hostdev>\n";
}

std::string CellsText(const GuestLayout& layout) {
  std::string text;
  for (const GuestCell& cell : layout.cells) {
    text +=
        absl::StrFormat("      <cell id='%d' cpus='%d-%d' memory='%d' unit='GiB'/>\n", cell.cell,
                        cell.cell * kCellCpus, (cell.cell + 1) * kCellCpus - 1, kCellGib);
  }
  return text.empty() ? text : "    <numa>\n" + text + "    </numa>\n";
}

std::string PinText(const GuestLayout& layout) {
  std::string pins, nodes;
  for (const GuestCell& cell : layout.cells) {
    nodes += absl::StrFormat("    <memnode cellid='%d' mode='strict' nodeset='%d'/>\n", cell.cell,
                             cell.host_node);
    if (cell.cpus.empty()) continue;
    for (int i = 0; i < kCellCpus; ++i) {
      pins += absl::StrFormat("    <vcpupin vcpu='%d' cpuset='%s'/>\n", cell.cell * kCellCpus + i,
                              XmlText(cell.cpus));
    }
  }
  if (!pins.empty()) pins = "  <cputune>\n" + pins + "  </cputune>\n";
  if (!nodes.empty()) nodes = "  <numatune>\n" + nodes + "  </numatune>\n";
  return pins + nodes;
}

// A bridge's window is as large as its greatest region and begins at a multiple of that, so up to
// twice the sum can be needed.
std::string WindowNote(uint64_t bar_bytes) {
  constexpr uint64_t kMib = 1 << 20;
  if (bar_bytes < 1024 * kMib) return "";
  const uint64_t mib = std::bit_ceil(2 * bar_bytes / kMib);
  return absl::StrFormat(
      "The devices map %d GiB. Where the guest's firmware does not make its 64-bit window that "
      "large by itself, OVMF takes -fw_cfg name=opt/ovmf/X-PciMmio64Mb,string=%d",
      (bar_bytes + 1024 * kMib - 1) / (1024 * kMib), mib);
}

std::string HeadText(const Topology& topology, const std::vector<PciAddress>& devices,
                     const GuestLayout& layout) {
  std::string text = Comment(
      "",
      "A guest whose devices are as near to each other as on this host. Take over cpu/numa, "
      "cputune, numatune, the controllers and the hostdevs; the rest is an example. The "
      "controllers' indices have to be free in your domain.");
  for (const std::string& note : GuestNotes(topology, devices)) text += Comment("", note);
  text += Comment("", WindowNote(layout.bar_bytes));
  for (const PciAddress& device : devices) {
    if (device.domain > 0xffff) {
      text += Comment("", device.ToString() + ": QEMU takes domains of four digits only");
    }
  }
  return text;
}

}  // namespace

std::string LibvirtText(const Topology& topology, const std::vector<PciAddress>& devices,
                        const GuestLayout& layout) {
  const int cells = std::max<int>(1, static_cast<int>(layout.cells.size()));
  std::string text = HeadText(topology, devices, layout);
  text += absl::StrFormat(
      "<domain type='kvm'>\n"
      "  <name>example</name>\n"
      "  <memory unit='GiB'>%d</memory>\n"
      "  <vcpu placement='static'>%d</vcpu>\n"
      "  <os firmware='efi'>\n"
      "    <type arch='x86_64' machine='q35'>hvm</type>\n"
      "  </os>\n"
      "  <features>\n"
      "    <acpi/>\n"
      "    <apic/>\n"
      "  </features>\n"
      "  <cpu mode='host-passthrough'>\n"
      "    <maxphysaddr mode='passthrough'/>\n%s"
      "  </cpu>\n%s",
      cells * kCellGib, cells * kCellCpus, CellsText(layout), PinText(layout));
  text += "  <devices>\n    <controller type='pci' index='0' model='pcie-root'/>\n";
  for (const GuestController& port : layout.controllers) text += ControllerText(layout, port);
  for (const GuestFunction& function : layout.functions) text += HostdevText(topology, function);
  return text + "  </devices>\n</domain>\n";
}

}  // namespace vfio_agent
