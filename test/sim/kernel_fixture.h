// What the simulator's own tests share: small nodes, and waiting for a condition.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "test/sim/kernel.h"
#include "test/sim/machine.h"

namespace vfio_agent::sim {

// A network card alone in group 14, one with a sound function in group 15, a root port above
// each, and a disk controller without a group.
inline constexpr char kSmallNode[] = R"(
host: {iommu_active: true, iommu: intel}
drivers: [pci-stub]
devices:
- {address: "0000:00:02.0", vendor: "1b36", device: "000c", class: "060400", driver: pcieport, iommu_group: 1, acs: {cap: "5f", ctl: "1d"}}
- {address: "0000:00:02.1", vendor: "1b36", device: "000c", class: "060400", driver: pcieport, iommu_group: 2}
- {address: "0000:00:1f.2", vendor: "8086", device: "2922", class: "010601", driver: ahci}
- {address: "0000:01:00.0", vendor: "8086", device: "10d3", class: "020000", driver: e1000e, iommu_group: 14, parent: "0000:00:02.0", reset_method: "pm bus"}
- {address: "0000:02:00.0", vendor: "8086", device: "10d3", class: "020000", driver: e1000e, iommu_group: 15, parent: "0000:00:02.1", reset_method: "flr bus"}
- {address: "0000:02:00.1", vendor: "8086", device: "2668", class: "040300", driver: snd_hda_intel, iommu_group: 15, parent: "0000:00:02.1"}
)";

inline constexpr char kCard[] = "0000:01:00.0";
inline constexpr char kFirst[] = "0000:02:00.0";
inline constexpr char kSecond[] = "0000:02:00.1";

inline std::unique_ptr<Kernel> MakeKernel(const std::string& yaml) {
  auto machine = ParseMachine(yaml, "test");
  INFO(machine.status().ToString());
  REQUIRE(machine.ok());
  return std::make_unique<Kernel>(*std::move(machine));
}

inline std::string DevicePath(const std::string& address) {
  return "sys/bus/pci/devices/" + address;
}

inline std::string ReadText(Kernel& kernel, const std::string& path) {
  const Shown shown = kernel.Read(path);
  return shown.error == 0 ? shown.text : ErrnoName(shown.error);
}

// Empty without one.
inline std::string DriverOf(Kernel& kernel, const std::string& address) {
  const std::string target = kernel.ReadLink(DevicePath(address) + "/driver").text;
  return target.substr(target.rfind('/') + 1);
}

inline int Override(Kernel& kernel, const std::string& address, const std::string& text) {
  return kernel.Write(DevicePath(address) + "/driver_override", text);
}

inline int Unbind(Kernel& kernel, const std::string& address) {
  return kernel.Write(DevicePath(address) + "/driver/unbind", address);
}

inline int Probe(Kernel& kernel, const std::string& address) {
  return kernel.Write("sys/bus/pci/drivers_probe", address);
}

inline void MoveToVfio(Kernel& kernel, const std::string& address) {
  REQUIRE(Override(kernel, address, "vfio-pci") == 0);
  REQUIRE(Unbind(kernel, address) == 0);
  REQUIRE(Probe(kernel, address) == 0);
  REQUIRE(DriverOf(kernel, address) == "vfio-pci");
}

// Whether `condition` came true before a deadline that only a broken test reaches.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace vfio_agent::sim
