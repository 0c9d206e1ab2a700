#include <algorithm>

#include "absl/strings/str_format.h"
#include "test/sim/machine.h"

namespace vfio_agent::sim {
namespace {

constexpr uint16_t kAcsCapability = 0x5f;
constexpr uint16_t kAcsControl = 0x1d;

MachineDevice Bridge(const std::string& address, const std::string& parent, int group) {
  return {.address = address,
          .vendor = 0x10b5,
          .device = 0x9797,
          .class_code = 0x060400,
          .driver = "pcieport",
          .group = group,
          .numa_node = 0,
          .parent = parent,
          .is_bridge = true,
          .acs = AcsFact::kGiven,
          .acs_capability = kAcsCapability,
          .acs_control = kAcsControl};
}

MachineDevice Endpoint(const std::string& address, const std::string& parent, int group) {
  return {.address = address,
          .vendor = 0x10de,
          .device = 0x2330,
          .subsystem_vendor = 0x10de,
          .subsystem_device = 0x1839,
          .class_code = 0x030200,
          .revision = 0xa1,
          .driver = "nvidia",
          .group = group,
          .numa_node = 0,
          .parent = parent,
          .reset_method = "flr bus"};
}

}  // namespace

// Each domain holds one root port, one switch with up to 16 ports and below each port a GPU with
// its audio function, so bus numbers never run out.
Machine MakeSyntheticMachine(int functions, bool bound) {
  constexpr int kPorts = 16;
  Machine machine;
  machine.name = absl::StrFormat("synthetic-%d", functions);
  machine.iommu = "intel";
  machine.command_line = "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet intel_iommu=on";
  machine.numa_nodes[0] = {.cpulist = "0-63", .distance = "10"};
  int group = 0;
  for (int domain = 0, made = 0; made < functions; ++domain) {
    const std::string root = absl::StrFormat("%04x:00:01.0", domain);
    const std::string upstream = absl::StrFormat("%04x:01:00.0", domain);
    machine.devices.push_back(Bridge(root, "", group++));
    machine.devices.push_back(Bridge(upstream, root, group++));
    for (int port = 0; port < kPorts && made < functions; ++port) {
      const std::string below = absl::StrFormat("%04x:02:%02x.0", domain, port);
      machine.devices.push_back(Bridge(below, upstream, group++));
      for (int function = 0; function < 2 && made < functions; ++function, ++made) {
        MachineDevice device =
            Endpoint(absl::StrFormat("%04x:%02x:00.%d", domain, 3 + port, function), below, group);
        if (function == 1) {
          device.device = 0x22ba;
          device.class_code = 0x040300;
          device.driver = "snd_hda_intel";
        }
        if (bound) device.driver = "vfio-pci";
        machine.devices.push_back(device);
      }
      ++group;
    }
  }
  if (bound) machine.drivers = {"nvidia", "snd_hda_intel"};
  std::sort(machine.devices.begin(), machine.devices.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return machine;
}

}  // namespace vfio_agent::sim
