#include "sysfs/device/capabilities.h"

#include <algorithm>
#include <cerrno>
#include <optional>

namespace vfio_agent {
namespace {

// Offsets and bits: PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification,
// chapter 7; the same names as in linux/pci_regs.h.
constexpr size_t kStatus = 0x06;
constexpr unsigned kStatusCapList = 0x10;
constexpr size_t kHeaderType = 0x0e;
constexpr size_t kCapPointer = 0x34;
constexpr size_t kStandardEnd = 0x100;
constexpr size_t kExtendedEnd = 0x1000;
constexpr unsigned kCapIdPcie = 0x10;
constexpr unsigned kCapIdAf = 0x13;
constexpr unsigned kExtIdAcs = 0x000d;
constexpr unsigned kDevCapFlr = 1u << 28;

using Bytes = std::span<const std::byte>;

// Config space is little-endian whatever the host is.
unsigned Read8(Bytes bytes, size_t at) { return std::to_integer<unsigned>(bytes[at]); }
unsigned Read16(Bytes bytes, size_t at) { return Read8(bytes, at) | Read8(bytes, at + 1) << 8; }
unsigned Read32(Bytes bytes, size_t at) { return Read16(bytes, at) | Read16(bytes, at + 2) << 16; }

struct Found {
  bool complete = false;  // the list was walked to its end
  size_t at = 0;          // 0: not there
};

// Walks the standard capability list for `id`.
Found FindStandard(Bytes config, unsigned id) {
  if (config.size() < 0x40) return {};
  if ((Read16(config, kStatus) & kStatusCapList) == 0) return {.complete = true};
  size_t at = Read8(config, kCapPointer) & ~3u;
  // A capability takes at least 4 bytes, so this many steps can only mean a loop.
  for (size_t steps = kStandardEnd / 4; steps > 0; --steps) {
    if (at == 0) return {.complete = true};
    if (at < 0x40 || at + 4 > std::min(config.size(), kStandardEnd)) return {};
    if (Read8(config, at) == id) return {.complete = true, .at = at};
    at = Read8(config, at + 1) & ~3u;
  }
  return {};
}

// Walks the extended capability list for `id`.
Found FindExtended(Bytes config, unsigned id) {
  if (config.size() < kExtendedEnd) return {};
  size_t at = kStandardEnd;
  for (size_t steps = (kExtendedEnd - kStandardEnd) / 8; steps > 0; --steps) {
    const unsigned header = Read32(config, at);
    if (header == 0 || header == 0xffffffff) return {.complete = true};
    if ((header & 0xffff) == id) return {.complete = true, .at = at};
    at = header >> 20 & ~3u;
    if (at == 0) return {.complete = true};
    if (at < kStandardEnd || at + 8 > kExtendedEnd) return {};
  }
  return {};
}

Fact<Acs> FindAcs(Bytes config, const Capabilities& known) {
  // Conventional PCI (256 bytes) cannot have ACS; of PCIe we must see all 4096 bytes to say so.
  if (known.size_bytes <= kStandardEnd && known.pcie_type.absent()) return Fact<Acs>::Absent();
  const Found acs = FindExtended(config, kExtIdAcs);
  if (!acs.complete) return Fact<Acs>::Unknown(EACCES);
  if (acs.at == 0) return Fact<Acs>::Absent();
  return Fact<Acs>(Acs{.capability = static_cast<uint16_t>(Read16(config, acs.at + 4)),
                       .control = static_cast<uint16_t>(Read16(config, acs.at + 6))});
}

Fact<bool> FindFlr(Bytes config, const Found& pcie) {
  if (!pcie.complete) return Fact<bool>::Unknown(EACCES);
  if (pcie.at != 0) {
    // The register of a capability at the very end would be somebody else's bytes.
    if (pcie.at + 8 > std::min(config.size(), kStandardEnd)) return Fact<bool>::Unknown(EACCES);
    return Fact<bool>((Read32(config, pcie.at + 4) & kDevCapFlr) != 0);
  }
  const Found af = FindStandard(config, kCapIdAf);  // "Advanced Features": FLR before PCIe
  if (!af.complete) return Fact<bool>::Unknown(EACCES);
  if (af.at == 0) return Fact<bool>(false);
  return Fact<bool>((Read8(config, af.at + 3) & 0x02) != 0);
}

bool AllOnes(Bytes config, bool is_vf) {
  const size_t skip = is_vf ? 4 : 0;
  return config.size() > skip && std::ranges::all_of(config.subspan(skip), [](std::byte byte) {
           return byte == std::byte{0xff};
         });
}

}  // namespace

Capabilities DecodeConfig(std::span<const std::byte> config, size_t size_bytes, bool is_vf) {
  Capabilities decoded{.readable_bytes = config.size(), .size_bytes = size_bytes};
  decoded.pcie_type = Fact<PcieType>::Unknown(EACCES);
  decoded.acs = Fact<Acs>::Unknown(EACCES);
  decoded.flr = Fact<bool>::Unknown(EACCES);
  decoded.all_ones = AllOnes(config, is_vf);
  if (config.size() < 0x40 || decoded.all_ones) return decoded;

  const unsigned header = Read8(config, kHeaderType);
  decoded.is_bridge = (header & 0x7f) == 1 || (header & 0x7f) == 2;
  decoded.multifunction = (header & 0x80) != 0 && !is_vf;
  const Found pcie = FindStandard(config, kCapIdPcie);
  if (pcie.at != 0) {
    decoded.pcie_type =
        Fact<PcieType>(static_cast<PcieType>(Read16(config, pcie.at + 2) >> 4 & 0xf));
  } else if (pcie.complete) {
    decoded.pcie_type = Fact<PcieType>::Absent();
  }
  decoded.acs = FindAcs(config, decoded);
  decoded.flr = FindFlr(config, pcie);
  return decoded;
}

}  // namespace vfio_agent
