// DecodeConfig: nothing is read outside of the image, and nothing is claimed that is not in it.
//
// The input: one byte of switches, then the image's bytes from offset 0. Bit 0: a virtual function;
// bits 1 and 2: the image is 64, 256 or 4096 bytes long, or as long as the input; bit 3: the kernel
// says that the space has 4096 bytes, else 256; bit 4: what the input lacks is ones, else zeros;
// bit 5: the input's last 8 bytes stand at the end of the image as well, where inputs seldom reach.
#include <algorithm>
#include <array>
#include <vector>

#include "sysfs/device/capabilities.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

using Bytes = std::vector<std::byte>;

struct Image {
  Bytes bytes;  // on the heap and of the exact size, so that the sanitizer sees its end
  size_t size_bytes = 0;
  bool is_vf = false;
};

Image ReadImage(const uint8_t* data, size_t size) {
  const unsigned switches = size == 0 ? 0 : data[0];
  const std::array<size_t, 4> lengths = {std::min(size, size_t{4096}), 64, 256, 4096};
  Image image{.size_bytes = (switches & 8) != 0 ? size_t{4096} : size_t{256},
              .is_vf = (switches & 1) != 0};
  const std::byte filler{static_cast<uint8_t>((switches & 16) != 0 ? 0xff : 0)};
  image.bytes = Bytes(lengths.at(switches >> 1 & 3), filler);
  image.size_bytes = std::max(image.size_bytes, image.bytes.size());  // no read gives more
  for (size_t i = 0; i + 1 < size && i < image.bytes.size(); ++i) {
    image.bytes[i] = std::byte{data[i + 1]};
  }
  for (size_t i = 1; (switches & 32) != 0 && i <= 8 && i < size && i <= image.bytes.size(); ++i) {
    image.bytes[image.bytes.size() - i] = std::byte{data[size - i]};
  }
  return image;
}

unsigned Read16(const Bytes& bytes, size_t at) {
  return std::to_integer<unsigned>(bytes[at]) | std::to_integer<unsigned>(bytes[at + 1]) << 8;
}

// The two registers of an ACS capability stand somewhere in the extended space.
bool Contains(const Bytes& bytes, const Acs& acs) {
  for (size_t at = 0x100; at + 8 <= bytes.size(); at += 4) {
    if (Read16(bytes, at) == 0x000d && Read16(bytes, at + 4) == acs.capability &&
        Read16(bytes, at + 6) == acs.control) {
      return true;
    }
  }
  return false;
}

void CheckHeader(const Image& image, const Capabilities& decoded) {
  const Bytes& bytes = image.bytes;
  const bool header = bytes.size() >= 64 && !decoded.all_ones;
  const unsigned type = bytes.size() > 0x0e ? std::to_integer<unsigned>(bytes[0x0e]) : 0;
  Require(decoded.readable_bytes == bytes.size(), "the readable size is the image's");
  Require(decoded.is_bridge == (header && ((type & 0x7f) == 1 || (type & 0x7f) == 2)),
          "a bridge is what the header says");
  Require(!decoded.multifunction || (header && !image.is_vf && (type & 0x80) != 0),
          "a device has siblings where the header says so");
  Require(header || (decoded.pcie_type.unknown() && decoded.acs.unknown() && decoded.flr.unknown()),
          "without a header nothing is known");
}

void CheckCapabilities(const Image& image, const Capabilities& decoded) {
  if (decoded.acs.known()) {
    Require(Contains(image.bytes, decoded.acs.value()), "an ACS capability is in the image");
  }
  Require(!decoded.acs.absent() || image.bytes.size() == 4096 ||
              (image.size_bytes == 256 && decoded.pcie_type.absent()),
          "ACS is absent only where the whole space was read, or where there is no room for it");
  Require(static_cast<unsigned>(decoded.pcie_type.value()) <= 0xf, "a port type has four bits");
  Require(!decoded.flr.is(true) || image.bytes.size() >= 0x44,
          "a reset of the function is told behind the header");
}

template <typename T>
void RequireConfirmed(const Fact<T>& part, const Fact<T>& whole) {
  Require(part.unknown() || part == whole, "what the first bytes tell, all of them confirm");
}

// What is known from a shorter read (the kernel gives 64 bytes to who lacks CAP_SYS_ADMIN).
void CheckShorter(const Image& image, const Capabilities& whole) {
  if (whole.all_ones) return;
  for (const size_t size : {size_t{64}, size_t{256}}) {
    if (size >= image.bytes.size()) continue;
    const Bytes bytes(image.bytes.begin(), image.bytes.begin() + static_cast<ptrdiff_t>(size));
    const Capabilities part = DecodeConfig(bytes, image.size_bytes, image.is_vf);
    RequireConfirmed(part.pcie_type, whole.pcie_type);
    RequireConfirmed(part.acs, whole.acs);
    RequireConfirmed(part.flr, whole.flr);
  }
}

void Check(const Image& image) {
  const Capabilities decoded = DecodeConfig(image.bytes, image.size_bytes, image.is_vf);
  CheckHeader(image, decoded);
  CheckCapabilities(image, decoded);
  CheckShorter(image, decoded);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::ReadImage(data, size));
  return 0;
}
