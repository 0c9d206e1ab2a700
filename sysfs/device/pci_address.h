// PciAddress: where one PCI function sits, as the kernel names it in sysfs.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace vfio_agent {

struct PciAddress {
  uint32_t domain = 0;  // 16 bits on bare metal; VMD and Hyper-V use more.
  uint8_t bus = 0;
  uint8_t device = 0;    // 0..31
  uint8_t function = 0;  // 0..7

  // Parses the sysfs form "dddd:bb:dd.f" (hex, 4 to 8 domain digits, lower or upper case).
  // Anything else is InvalidArgument: short lspci forms ("3b:00.0") are not accepted, since
  // a name read from the kernel never has them and one typed by a person may be ambiguous.
  static absl::StatusOr<PciAddress> Parse(std::string_view text);

  // The kernel's spelling: lower case, domain padded to 4 digits. Parse(ToString()) == *this.
  std::string ToString() const;

  // Ordered by domain, bus, device, function: the order in which lspci lists them.
  auto operator<=>(const PciAddress&) const = default;
};

// True for functions of one card: all but the function number is equal.
inline bool SameSlot(const PciAddress& a, const PciAddress& b) {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

}  // namespace vfio_agent
