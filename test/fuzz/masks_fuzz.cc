// The masks of snapshots: any text is masked, twice the same way, and a config space decodes as
// before. The first byte chooses the row.
#include <algorithm>

#include "agent/snapshot/masks.h"
#include "sysfs/device/capabilities.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

std::string Masked(const Mask& mask, std::string_view text) {
  Masker masker;
  return mask.apply(text, masker);
}

Capabilities Decode(std::string_view bytes, bool is_vf) {
  return DecodeConfig(std::as_bytes(std::span(bytes)), bytes.size(), is_vf);
}

// The input's bytes at the begin of a whole space, and by themselves.
void CheckConfigSpace(std::string_view text) {
  std::string whole(text.substr(0, 4096));
  whole.resize(4096);
  const Mask& mask = MaskFor("sys/d/config");
  for (const std::string& bytes : {whole, std::string(text)}) {
    const std::string masked = Masked(mask, bytes);
    Require(masked.size() == bytes.size(), "a config space keeps its size");
    for (const bool is_vf : {false, true}) {
      Require(Decode(masked, is_vf) == Decode(bytes, is_vf), "a masked space decodes as before");
    }
    Require(Masked(mask, masked) == masked, "what is masked is masked to itself");
  }
}

void Check(std::string_view text) {
  if (text.empty()) return;
  const auto masks = Masks();
  const Mask& mask = masks[static_cast<unsigned char>(text.front()) % masks.size()];
  text.remove_prefix(1);
  Require(Masked(mask, text) == Masked(mask, text), "the same text has the same mask",
          mask.pattern);
  CheckConfigSpace(text);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  return 0;
}
