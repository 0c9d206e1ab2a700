// The Kernel's device directories: which attributes a function has, and how each reads.
#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

std::string Modalias(const MachineDevice& facts) {
  return absl::StrFormat("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", facts.vendor, facts.device,
                         facts.subsystem_vendor, facts.subsystem_device, facts.class_code >> 16,
                         (facts.class_code >> 8) & 0xff, facts.class_code & 0xff);
}

std::string Uevent(const Device& device) {
  const MachineDevice& facts = device.facts;
  const std::string driver =
      device.driver.empty() ? "" : absl::StrFormat("DRIVER=%s\n", device.driver);
  return driver + absl::StrFormat(
                      "PCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\n"
                      "PCI_SLOT_NAME=%s\nMODALIAS=%s\n",
                      facts.class_code, facts.vendor, facts.device, facts.subsystem_vendor,
                      facts.subsystem_device, facts.address, Modalias(facts));
}

// One line per region: a bridge has 17, a function with SR-IOV 13, others 7.
std::string Resources(const MachineDevice& facts) {
  constexpr uint64_t kMib = uint64_t{1} << 20;
  constexpr uint64_t kMemory = 0x0000000000040200;      // IORESOURCE_MEM
  constexpr uint64_t kPrefetch64 = 0x000000000014220c;  // 64-bit, prefetchable
  const bool display = facts.class_code >> 16 == 0x03;
  const int lines = facts.is_bridge ? 17 : facts.sriov_total_vfs > 0 ? 13 : 7;
  std::string text;
  for (int line = 0; line < lines; ++line) {
    uint64_t size = 0;
    if (line == 0 && !facts.is_bridge) size = display ? 16 * kMib : kMib / 16;
    if (line == 1 && display) size = facts.bar1_bytes != 0 ? facts.bar1_bytes : 256 * kMib;
    const uint64_t start = size == 0 ? 0 : line == 0 ? 0xfd000000 : uint64_t{1} << 44;
    text += absl::StrFormat("0x%016x 0x%016x 0x%016x\n", start, size == 0 ? 0 : start + size - 1,
                            size == 0   ? 0
                            : line == 0 ? kMemory
                                        : kPrefetch64);
  }
  return text;
}

std::string Line(const std::string& text) { return text + "\n"; }

}  // namespace

std::string Kernel::PathOf(const MachineDevice& facts) const {
  if (!facts.sysfs_path.empty()) return facts.sysfs_path;
  const auto physical = devices_.find(facts.physfn);
  const bool beside = facts.parent.empty() && physical != devices_.end();
  const std::string& above = beside ? physical->second->facts.parent : facts.parent;
  if (const auto parent = devices_.find(above); parent != devices_.end()) {
    return PathOf(parent->second->facts) + "/" + facts.address;
  }
  // "0000:3b:00.0" sits on the root bus "pci0000:3b".
  const std::string bus = facts.address.substr(0, facts.address.rfind(':'));
  return "sys/devices/pci" + bus + "/" + facts.address;
}

void Kernel::ShowIdentity(const DevicePtr& device) {
  const std::string path = device->path + "/";
  const MachineDevice& facts = device->facts;
  vfs_.Text(path + "vendor", absl::StrFormat("0x%04x\n", facts.vendor));
  vfs_.Text(path + "device", absl::StrFormat("0x%04x\n", facts.device));
  vfs_.Text(path + "subsystem_vendor", absl::StrFormat("0x%04x\n", facts.subsystem_vendor));
  vfs_.Text(path + "subsystem_device", absl::StrFormat("0x%04x\n", facts.subsystem_device));
  vfs_.Text(path + "class", absl::StrFormat("0x%06x\n", facts.class_code));
  vfs_.Text(path + "revision", absl::StrFormat("0x%02x\n", facts.revision));
  vfs_.Text(path + "modalias", Line(Modalias(facts)));
  vfs_.Text(path + "irq", "0\n");
  vfs_.Text(path + "numa_node", absl::StrFormat("%d\n", facts.numa_node));
  const auto node = machine_.numa_nodes.find(std::max(facts.numa_node, 0));
  vfs_.Text(path + "local_cpulist",
            Line(node == machine_.numa_nodes.end() ? "" : node->second.cpulist));
  vfs_.Text(path + "resource", Resources(facts));
  if (facts.class_code >> 8 == 0x0300) {
    vfs_.Text(path + "boot_vga", facts.boot_vga.value_or(false) ? "1\n" : "0\n");
  }
  if (!facts.removable.empty()) vfs_.Text(path + "removable", Line(facts.removable));
  vfs_.Link(path + "subsystem", "sys/bus/pci");
  if (facts.is_bridge) {
    const ConfigContext context = ContextOf(*device);
    vfs_.Text(path + "secondary_bus_number", absl::StrFormat("%d\n", context.secondary));
    vfs_.Text(path + "subordinate_bus_number", absl::StrFormat("%d\n", context.subordinate));
  }
}

void Kernel::ShowState(const DevicePtr& device) {
  const std::string path = device->path + "/";
  const auto show_enable = [device] { return std::string(device->driver.empty() ? "0\n" : "1\n"); };
  vfs_.File(path + "enable", 0644, Showing(show_enable), [](std::string_view, Call&) { return 0; });
  vfs_.File(path + "uevent", 0644, Showing([device] { return Uevent(*device); }),
            [](std::string_view, Call&) { return 0; });
  Node& config =
      vfs_.File(path + "config", 0644, Showing([this, device] { return ConfigOf(*device); }),
                [](std::string_view, Call&) { return 0; });
  config.size = ConfigSize(device->facts, PortOf(*device));
  const Show show_override = [this, device](Call& call) {
    if (const int error = Lock(device, call)) return Shown{.error = error};
    Unlock(device);
    const std::string& name = device->driver_override;
    return Shown{.error = 0, .text = Line(name.empty() ? "(null)" : name)};
  };
  vfs_.File(path + "driver_override", 0644, show_override,
            [this, device](std::string_view text, Call& call) {
              return StoreOverride(device, text, call);
            });
}

void Kernel::ShowPower(const DevicePtr& device) {
  const std::string path = device->path + "/";
  const auto showing = [&](std::string MachineDevice::*field) {
    return Showing([device, field] { return Line(device->facts.*field); });
  };
  vfs_.File(path + "power_state", showing(&MachineDevice::power_state));
  vfs_.File(path + "d3cold_allowed", 0644, showing(&MachineDevice::d3cold_allowed),
            [this, device](std::string_view text, Call& call) {
              if (const int error = Suffer(device, "d3cold", call)) return std::max(error, 0);
              device->facts.d3cold_allowed = std::string(text.substr(0, text.find('\n')));
              return 0;
            });
  auto control = std::make_shared<std::string>("auto");
  vfs_.File(path + "power/control", 0644, Showing([control] { return Line(*control); }),
            [control](std::string_view text, Call&) {
              *control = std::string(text.substr(0, text.find('\n')));
              return 0;
            });
  if (!device->facts.reset_method) return;
  vfs_.File(path + "reset_method", 0644,
            Showing([device] { return Line(device->facts.reset_method.value_or("")); }),
            [device](std::string_view text, Call&) {
              device->facts.reset_method = std::string(text.substr(0, text.find('\n')));
              return 0;
            });
  if (device->facts.reset_method->empty()) return;
  vfs_.File(path + "reset", 0200, nullptr, [](std::string_view, Call&) { return 0; });
}

void Kernel::ShowActions(const DevicePtr& device) {
  vfs_.File(device->path + "/remove", 0220, nullptr,
            [this, device](std::string_view text, Call& call) {
              return StoreRemove(device, text, call);
            });
  vfs_.File(device->path + "/rescan", 0200, nullptr,
            [this](std::string_view text, Call& call) { return StoreRescan(text, call); });
}

void Kernel::ShowDevice(const DevicePtr& device) {
  ShowIdentity(device);
  ShowState(device);
  ShowPower(device);
  ShowActions(device);
  ShowSriov(device);
  for (const auto& [attribute, text] : device->facts.attributes) {
    if (attribute.find('/') == std::string::npos) {
      vfs_.Text(device->path + "/" + attribute, text);
    }
  }
  vfs_.Link("sys/bus/pci/devices/" + device->facts.address, device->path);
  if (device->facts.group) JoinGroup(*device);
}

void Kernel::HideDevice(const DevicePtr& device) {
  if (device->facts.group) LeaveGroup(*device);
  vfs_.Remove("sys/bus/pci/devices/" + device->facts.address);
  vfs_.Remove(device->path);
}

}  // namespace vfio_agent::sim
