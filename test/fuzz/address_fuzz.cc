// PciAddress: a text is an address exactly when a plain reading of the format says so, and an
// address survives being printed.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "sysfs/device/pci_address.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

bool AreHex(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// The format counted from the end, where its widths are fixed: "….:bb:dd.f".
bool LooksRight(std::string_view text) {
  if (text.size() < 12 || text.size() > 16) return false;
  const std::string_view domain = text.substr(0, text.size() - 8);
  const std::string_view rest = text.substr(text.size() - 8);
  return AreHex(domain) && rest[0] == ':' && AreHex(rest.substr(1, 2)) && rest[3] == ':' &&
         (rest[4] == '0' || rest[4] == '1') && AreHex(rest.substr(5, 1)) && rest[6] == '.' &&
         rest[7] >= '0' && rest[7] <= '7';
}

// Lower case, and no more zeros in front of the domain than the kernel prints.
std::string Canonical(std::string_view text) {
  while (text.size() > 12 && text.front() == '0') text.remove_prefix(1);
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

void CheckText(std::string_view text) {
  const absl::StatusOr<PciAddress> address = PciAddress::Parse(text);
  Require(address.ok() == LooksRight(text), "an address is what the format says", text);
  if (!address.ok()) return RequireError(address.status(), absl::StatusCode::kInvalidArgument);
  Require(address->ToString() == Canonical(text), "an address is printed as it was written", text);
}

void CheckBytes(const uint8_t* data, size_t size) {
  if (size < 7) return;
  PciAddress address{.bus = data[4],
                     .device = static_cast<uint8_t>(data[5] & 0x1f),
                     .function = static_cast<uint8_t>(data[6] & 0x7)};
  std::memcpy(&address.domain, data, sizeof address.domain);
  const absl::StatusOr<PciAddress> parsed = PciAddress::Parse(address.ToString());
  Require(parsed.ok() && *parsed == address, "a printed address is parsed to the same one",
          address.ToString());
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::CheckText(vfio_agent::Text(data, size));
  vfio_agent::CheckBytes(data, size);
  return 0;
}
