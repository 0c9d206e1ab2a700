#include "iommu/policy/selector.h"

#include <algorithm>
#include <charconv>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

bool ParseHex16(std::string_view text, uint16_t& out) {
  const char* const end = text.data() + text.size();
  return text.size() == 4 && std::from_chars(text.data(), end, out, 16).ptr == end;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return lower;
}

// "65:00.0": every device of that bus, slot and function, whatever its domain.
absl::StatusOr<PciAddress> FindShort(std::string_view text, const std::vector<PciDevice>& devices) {
  const std::string ending = ":" + Lower(text);
  std::vector<PciAddress> found;
  for (const PciDevice& device : devices) {
    if (device.address.ToString().ends_with(ending)) found.push_back(device.address);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) return absl::NotFoundError(absl::StrFormat("no device at '%s'", text));
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is ambiguous: %s and %s; write the domain", text, found[0].ToString(),
                      found[1].ToString()));
}

// "10de:2330" and "10de:".
bool ParseId(std::string_view text, Selector& selector) {
  uint16_t vendor = 0, device = 0;
  if (text.size() < 5 || text[4] != ':' || !ParseHex16(text.substr(0, 4), vendor)) return false;
  const std::string_view rest = text.substr(5);
  if (!rest.empty() && !ParseHex16(rest, device)) return false;
  selector.vendor = vendor;
  if (!rest.empty()) selector.device = device;
  return true;
}

bool LooksLikeShortAddress(std::string_view text) {
  return text.size() == 7 && text[2] == ':' && text[5] == '.';
}

}  // namespace

bool Matches(const Selector& selector, const PciDevice& device) {
  if (selector.address && *selector.address != device.address) return false;
  if (selector.vendor && *selector.vendor != device.vendor) return false;
  if (selector.device && *selector.device != device.device) return false;
  if (selector.group && selector.group != device.group) return false;
  if (selector.driver && selector.driver != device.driver) return false;
  if (selector.classes.empty()) return true;
  const std::string code = absl::StrFormat("%06x", device.class_code);
  return std::ranges::any_of(selector.classes, [&code](const std::string& prefix) {
    return code.starts_with(Lower(prefix));
  });
}

bool MatchesAny(const std::vector<Selector>& selectors, const PciDevice& device) {
  return std::ranges::any_of(selectors,
                             [&device](const Selector& s) { return Matches(s, device); });
}

absl::StatusOr<Target> ParseTarget(std::string_view text, const std::vector<PciDevice>& devices) {
  Target target{.text = std::string(text)};
  if (text.starts_with("group:")) {
    int group = -1;
    if (absl::SimpleAtoi(std::string(text.substr(6)), &group) && group >= 0) {
      target.selector.group = group;
      return target;
    }
  } else if (text.find('/') != std::string_view::npos) {
    target.resource = std::string(text);
    return target;
  } else if (const auto address = PciAddress::Parse(text); address.ok()) {
    target.selector.address = *address;
    return target;
  } else if (LooksLikeShortAddress(text)) {
    const absl::StatusOr<PciAddress> found = FindShort(text, devices);
    if (!found.ok()) return found.status();
    target.selector.address = *found;
    return target;
  } else if (ParseId(text, target.selector)) {
    return target;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "'%s' is no selector: want an address (0000:65:00.0 or 65:00.0), group:26, an id "
      "(10de:2330), a vendor (10de:), a resource (nvidia.com/NAME) or the uuid of a mediated "
      "device that is there",
      text));
}

}  // namespace vfio_agent
