// Capabilities: what one function's config space says, decoded. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sysfs/fact.h"

namespace vfio_agent {

// The ACS extended capability of one function.
//
// Source: PCI Express Base Specification, "ACS Extended Capability" (id 0x000d), two 16-bit
// registers: capability at offset 4, control at offset 6. Bits, in both: 0 source validation,
// 1 translation blocking, 2 request redirect, 3 completion redirect, 4 upstream forwarding,
// 5 egress control, 6 direct translated.
struct Acs {
  uint16_t capability = 0;  // what the function can do
  uint16_t control = 0;     // what is switched on now
  bool operator==(const Acs&) const = default;
};

// PCIe device/port type: bits 7:4 of the PCI Express Capabilities Register.
enum class PcieType : uint8_t {
  kEndpoint = 0,
  kLegacyEndpoint = 1,
  kRootPort = 4,
  kUpstream = 5,
  kDownstream = 6,
  kPcieToPci = 7,
  kPciToPcie = 8,
  kRootComplexEndpoint = 9,
  kRootComplexEventCollector = 10,
};

struct Capabilities {
  size_t readable_bytes = 0;  // 4096, 256, or 64 without CAP_SYS_ADMIN; 0: nothing readable
  size_t size_bytes = 0;      // what the kernel says there is: 256 or 4096
  bool all_ones = false;      // every byte read ff: the device does not answer
  bool is_bridge = false;     // header type 1 (or CardBus, 2); by class when unreadable
  bool multifunction = false;
  Fact<PcieType> pcie_type;  // absent: conventional PCI
  Fact<Acs> acs;             // unknown: the extended space was not readable
  Fact<bool> flr;            // function-level reset: device capabilities bit 28
  bool operator==(const Capabilities&) const = default;
};

// Decodes `config`, the readable part of a config space whose full size is `size_bytes`.
//
// `is_vf`: a VF's first four bytes read ff by design (its ids come from the PF), so they are not
// taken as a sign of a dead device. Loops and out-of-range pointers in broken devices end a
// walk and give "unknown".
Capabilities DecodeConfig(std::span<const std::byte> config, size_t size_bytes, bool is_vf);

}  // namespace vfio_agent
