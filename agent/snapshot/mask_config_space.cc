#include <algorithm>
#include <array>
#include <utility>

#include "agent/snapshot/mask_text.h"

namespace vfio_agent {
namespace {

// Names and offsets as in linux/pci_regs.h.
constexpr size_t kHeader = 0x40;
constexpr size_t kStandardEnd = 0x100;
constexpr size_t kExtendedEnd = 0x1000;
constexpr size_t kStatus = 0x06;
constexpr unsigned kStatusCapList = 0x10;
constexpr size_t kCapPointer = 0x34;

// Id and how many bytes are kept.
using Kept = std::pair<unsigned, size_t>;
constexpr auto kStandard = std::to_array<Kept>({{0x01, 8}, {0x10, 0x3c}, {0x13, 6}});
constexpr auto kExtended = std::to_array<Kept>({{0x0d, 8}, {0x0e, 8}, {0x10, 0x40}});

template <size_t size>
size_t KeptOf(const std::array<Kept, size>& table, unsigned id) {
  const auto found = std::ranges::find(table, id, &Kept::first);
  return found == table.end() ? 4 : found->second;
}

class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes), kept_(bytes.size(), '\0') {}

  void Keep(size_t at, size_t size) {
    bytes_.copy(kept_.data() + at, std::min(size, bytes_.size() - at), at);
  }

  // The walks end where that of DecodeConfig() does at the latest; after so many steps a list can
  // only be a loop.
  void KeepStandard() {
    if ((Read8(kStatus) & kStatusCapList) == 0) return;
    size_t at = Read8(kCapPointer) & ~3u;
    for (size_t steps = kStandardEnd / 4; steps > 0; --steps) {
      const size_t end = std::min(bytes_.size(), kStandardEnd);
      if (at < kHeader || at + 4 > end) return;
      Keep(at, std::min(KeptOf(kStandard, Read8(at)), end - at));
      at = Read8(at + 1) & ~3u;
    }
  }

  void KeepExtended() {
    size_t at = kStandardEnd;
    for (size_t steps = (kExtendedEnd - kStandardEnd) / 8; steps > 0; --steps) {
      if (at < kStandardEnd || at + 8 > bytes_.size()) return;
      const unsigned header =
          Read8(at) | Read8(at + 1) << 8 | Read8(at + 2) << 16 | Read8(at + 3) << 24;
      Keep(at, KeptOf(kExtended, header & 0xffff));
      if (header == 0 || header == 0xffffffff) return;
      at = header >> 20 & ~3u;
    }
  }

  std::string Take() && { return std::move(kept_); }

 private:
  unsigned Read8(size_t at) const { return static_cast<unsigned char>(bytes_[at]); }

  std::string_view bytes_;
  std::string kept_;
};

// A device that does not answer, which is a fact; a virtual function's ids read ff in any case.
bool DoesNotAnswer(std::string_view bytes) {
  return bytes.size() > 4 && bytes.find_first_not_of('\xff', 4) == std::string_view::npos;
}

}  // namespace

std::string MaskConfigSpace(std::string_view bytes, Masker& /*masker*/) {
  if (DoesNotAnswer(bytes) || bytes.size() < kHeader) return std::string(bytes);
  Image image(bytes);
  image.Keep(0, kHeader);
  image.KeepStandard();
  if (bytes.size() >= kExtendedEnd) image.KeepExtended();
  return std::move(image).Take();
}

}  // namespace vfio_agent
