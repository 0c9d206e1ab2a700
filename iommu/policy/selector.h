// Selectors: how configuration and command line name devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sysfs/device/pci_device.h"

namespace vfio_agent {

// One item of a `select:` list. The keys that are set must all match.
struct Selector {
  std::optional<PciAddress> address;
  std::optional<uint16_t> vendor;
  std::optional<uint16_t> device;
  std::vector<std::string> classes;  // hex prefixes of the class: "0300", "03", "030000"; any
  std::optional<int> group;
  std::optional<std::string> driver;
  bool operator==(const Selector&) const = default;
};

bool Matches(const Selector& selector, const PciDevice& device);
bool MatchesAny(const std::vector<Selector>& selectors, const PciDevice& device);

// A SELECTOR of the command line. `resource` is set where the text is a resource's name.
struct Target {
  Selector selector;
  std::string resource;
  std::string text;  // as it was typed, for messages
  bool operator==(const Target&) const = default;
};

// Parses an address (long, or short where one device in `devices` fits), "group:26",
// "10de:2330", "10de:" or "nvidia.com/NAME". InvalidArgument says what was expected.
absl::StatusOr<Target> ParseTarget(std::string_view text, const std::vector<PciDevice>& devices);

}  // namespace vfio_agent
