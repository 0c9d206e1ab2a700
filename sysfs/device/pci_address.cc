#include "sysfs/device/pci_address.h"

#include <algorithm>
#include <charconv>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

// Eats `min` to `max` hex digits from the front of `text`.
bool TakeHex(std::string_view& text, size_t min, size_t max, uint32_t& out) {
  const char* const begin = text.data();
  const auto [end, error] = std::from_chars(begin, begin + std::min(max, text.size()), out, 16);
  if (error != std::errc{} || static_cast<size_t>(end - begin) < min) return false;
  text.remove_prefix(static_cast<size_t>(end - begin));
  return true;
}

bool TakeChar(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

absl::StatusOr<PciAddress> PciAddress::Parse(std::string_view text) {
  std::string_view rest = text;
  uint32_t domain = 0, bus = 0, device = 0, function = 0;
  const bool matched = TakeHex(rest, 4, 8, domain) && TakeChar(rest, ':') &&
                       TakeHex(rest, 2, 2, bus) && TakeChar(rest, ':') &&
                       TakeHex(rest, 2, 2, device) && TakeChar(rest, '.') &&
                       TakeHex(rest, 1, 1, function) && rest.empty();
  if (!matched || device > 31 || function > 7) {
    return absl::InvalidArgumentError(
        absl::StrFormat("not a PCI address (want dddd:bb:dd.f): '%s'", text));
  }
  return PciAddress{.domain = domain,
                    .bus = static_cast<uint8_t>(bus),
                    .device = static_cast<uint8_t>(device),
                    .function = static_cast<uint8_t>(function)};
}

std::string PciAddress::ToString() const {
  return absl::StrFormat("%04x:%02x:%02x.%x", domain, bus, device, function);
}

}  // namespace vfio_agent
