// Naming: whatever a model is called, the resource's name is one that the kubelet takes; and
// CheckResourceName agrees with a plain reading of the kubelet's rules.
#include "iommu/policy/naming.h"

#include <algorithm>

#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool Only(std::string_view text, std::string_view a, std::string_view b) {
  return std::ranges::all_of(text, [a, b](char c) {
    return a.find(c) != std::string_view::npos || b.find(c) != std::string_view::npos;
  });
}

bool Among(char c, std::string_view a, std::string_view b = "") {
  return a.find(c) != std::string_view::npos || b.find(c) != std::string_view::npos;
}

// One label of a DNS name, RFC 1123: here of any length, since the kubelet limits only the whole.
bool IsLabel(std::string_view label) {
  return !label.empty() && Only(label, kLower, "-") && Among(label.front(), kLower) &&
         Among(label.back(), kLower);
}

bool IsDomain(std::string_view domain) {
  while (true) {
    const size_t dot = domain.find('.');
    if (!IsLabel(domain.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    domain.remove_prefix(dot + 1);
  }
}

// IsExtendedResourceName of the kubelet, read once more.
bool KubeletTakes(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos ||
      name.starts_with("requests.")) {
    return false;
  }
  const std::string domain = "requests." + std::string(name.substr(0, slash));
  const std::string_view part = name.substr(slash + 1);
  if (domain.size() > 253 || !IsDomain(domain) || part.empty() || part.size() > 63) return false;
  return std::ranges::all_of(part,
                             [](char c) { return Among(c, kLower, kUpper) || Among(c, "-_."); }) &&
         Among(part.front(), kLower, kUpper) && Among(part.back(), kLower, kUpper);
}

void CheckName(std::string_view text) {
  const absl::Status status = CheckResourceName(text);
  Require(status.ok() == KubeletTakes(text), "a name is good where the kubelet takes it", text);
  if (!status.ok()) return RequireError(status, absl::StatusCode::kInvalidArgument);
  const std::string variable = ResourceVariable(text);
  Require(variable.starts_with("PCI_RESOURCE_") && variable.size() == text.size() + 13,
          "a variable is its resource, character by character", variable);
  Require(std::ranges::all_of(variable, [](char c) { return Among(c, kUpper, "0123456789_-"); }),
          "a variable can be set in an environment", variable);
}

void CheckModel(const std::string& text) {
  const std::string model = ModelResourceName(text);
  Require(model.empty() || KubeletTakes("nvidia.com/" + model), "a model makes a good name", model);
  Require(Only(model, kUpper, "0123456789_"), "a model's name is in upper case", model);
  Require(ModelResourceName(model) == model, "a model's name stays what it is", model);
  const PciDevice device{.vendor = 0x10de, .device = 0x2330};
  const std::string name = ResourceName({}, device, {}, {{{0x10de, 0x2330}, text}});
  Require(CheckResourceName(name).ok(), "a device without a model has a name as well", name);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(vfio_agent::Text(data, size));
  vfio_agent::CheckName(text);
  vfio_agent::CheckName("nvidia.com/" + text);
  vfio_agent::CheckModel(text);
  return 0;
}
