// ParseTarget: a selector names exactly one kind of thing, and fits just the devices that it says.
#include "iommu/policy/selector.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

std::vector<PciDevice> Devices() {
  const auto device = [](const char* address, uint16_t id, std::optional<int> group) {
    return PciDevice{
        .address = *PciAddress::Parse(address), .vendor = 0x10de, .device = id, .group = group};
  };
  // Two of them share "65:00.0".
  return {device("0000:3b:00.0", 0x2330, 26), device("0000:65:00.0", 0x2330, 27),
          device("0001:65:00.0", 0x22bc, std::nullopt), device("10000:01:00.1", 0x22bc, 0)};
}

// How many kinds of thing `target` names: it should be one, a vendor with its device counted once.
int Kinds(const Target& target) {
  const Selector& selector = target.selector;
  return (target.resource.empty() ? 0 : 1) + (selector.address ? 1 : 0) + (selector.group ? 1 : 0) +
         (selector.vendor ? 1 : 0);
}

std::string Print(const Target& target) {
  const Selector& selector = target.selector;
  if (!target.resource.empty()) return target.resource;
  if (selector.address) return selector.address->ToString();
  if (selector.group) return absl::StrFormat("group:%d", *selector.group);
  return absl::StrFormat("%04x:", *selector.vendor) +
         (selector.device ? absl::StrFormat("%04x", *selector.device) : "");
}

void CheckMatches(const Selector& selector, const std::vector<PciDevice>& devices) {
  for (const PciDevice& device : devices) {
    const bool fits = (!selector.address || *selector.address == device.address) &&
                      (!selector.group || selector.group == device.group) &&
                      (!selector.vendor || *selector.vendor == device.vendor) &&
                      (!selector.device || *selector.device == device.device);
    Require(Matches(selector, device) == fits, "a device fits when every key does",
            device.address.ToString());
  }
}

void Check(std::string_view text) {
  const std::vector<PciDevice> devices = Devices();
  const absl::StatusOr<Target> target = ParseTarget(text, devices);
  if (!target.ok()) {
    const bool absent = absl::IsNotFound(target.status());
    Require(!absent || text.size() == 7, "only a short address can be of no device", text);
    return RequireError(target.status(),
                        absent ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument);
  }
  Require(target->text == text, "the target keeps what was typed", target->text);
  Require(Kinds(*target) == 1, "a target names one kind of thing", text);
  Require(!target->selector.device || target->selector.vendor, "a device id has its vendor", text);
  if (target->selector.group) Require(*target->selector.group >= 0, "groups are not negative");
  const absl::StatusOr<Target> again = ParseTarget(Print(*target), devices);
  Require(again.ok() && again->selector == target->selector && again->resource == target->resource,
          "a printed selector is parsed to the same one", Print(*target));
  CheckMatches(target->selector, devices);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  return 0;
}
