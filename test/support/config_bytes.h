// ConfigBytes: the config space of one PCI function, built in the words of the specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sysfs/device/capabilities.h"

namespace vfio_agent {

// Little-endian, all zero at first. Capabilities are chained in the order in which they are added.
class ConfigBytes {
 public:
  explicit ConfigBytes(size_t size_bytes = 4096) : bytes_(size_bytes) {}

  ConfigBytes& Put8(size_t at, unsigned value);
  ConfigBytes& Put16(size_t at, unsigned value);
  ConfigBytes& Put32(size_t at, unsigned value);

  // Offset 0x0e: 0 an endpoint, 1 a bridge, 2 CardBus; bit 7 says that function 0 has siblings.
  ConfigBytes& Header(unsigned type, bool multifunction = false);
  ConfigBytes& Pcie(PcieType type, bool flr = false);  // capability 0x10
  ConfigBytes& AdvancedFeatures(bool flr);             // capability 0x13
  ConfigBytes& WithAcs(Acs acs);                       // extended, at 0x148, behind AER at 0x100
  // Only the first `size_bytes` stay.
  ConfigBytes& Cut(size_t size_bytes);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string text() const;

 private:
  size_t AddStandard(unsigned id);

  std::vector<std::byte> bytes_;
  size_t link_ = 0x34;  // where the offset of the next standard capability is written
  size_t next_ = 0x40;
};

// Every service that the kernel asks for, present and on; and the same switched off.
inline constexpr Acs kAcsOn{.capability = 0x5f, .control = 0x1d};
inline constexpr Acs kAcsOff{.capability = 0x5f, .control = 0};

ConfigBytes EndpointConfig(bool multifunction = false);
ConfigBytes ConventionalConfig(bool multifunction = false);  // 256 bytes, no PCI Express
// A root port, switch port or PCIe-to-PCI bridge; nullopt: without the ACS capability.
ConfigBytes PortConfig(PcieType type, std::optional<Acs> acs = std::nullopt,
                       bool multifunction = false);
// A device that does not answer.
ConfigBytes DeadConfig();

}  // namespace vfio_agent
