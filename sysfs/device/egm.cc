#include "sysfs/device/egm.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// The kernel's driver has room for four.
constexpr size_t kMostRegions = 64;
constexpr std::string_view kPrefix = "egm";

// The number in "egm4"; -1 for another name.
int NumberOf(std::string_view name) {
  constexpr size_t kMostDigits = 9;
  if (!name.starts_with(kPrefix) || name.size() > kPrefix.size() + kMostDigits) return -1;
  const std::optional<uint64_t> number = ParseNumber(name.substr(kPrefix.size()), 10);
  return number ? static_cast<int>(*number) : -1;
}

std::string RegionFile(std::string_view name, std::string_view file) {
  return absl::StrFormat("%s/%s/%s", kEgmClassDir, name, file);
}

absl::Status AddListed(const Tree& tree, EgmRegion& region) {
  const absl::StatusOr<std::string> text = tree.ReadText(RegionFile(region.name, "gpu_devices"));
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  for (const std::string_view line : Lines(*text)) {
    for (const std::string_view word : Fields(line)) {
      const absl::StatusOr<PciAddress> gpu = PciAddress::Parse(word);
      if (!gpu.ok()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("'%s' in its gpu_devices is no address", Printable(word)));
      }
      region.gpus.push_back(*gpu);
    }
  }
  return absl::OkStatus();
}

absl::Status AddLinked(const Tree& tree, EgmRegion& region) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   tree.List(absl::StrFormat("%s/%s", kEgmClassDir, region.name)));
  for (const std::string& name : names) {
    if (const auto gpu = PciAddress::Parse(name); gpu.ok()) region.gpus.push_back(*gpu);
  }
  return absl::OkStatus();
}

absl::Status AddGpus(const Tree& tree, EgmRegion& region) {
  RETURN_IF_ERROR(AddListed(tree, region));
  RETURN_IF_ERROR(AddLinked(tree, region));
  if (region.gpus.empty()) return absl::NotFoundError("the kernel names no GPU of it");
  return absl::OkStatus();
}

}  // namespace

EgmRegion ReadEgmRegion(const Tree& tree, std::string_view name) {
  EgmRegion region{.name = std::string(name)};
  region.has_node = tree.Exists(absl::StrFormat("dev/%s", name));
  if (const absl::Status status = AddGpus(tree, region); !status.ok()) {
    region.gpus.clear();
    region.fault = Printable(Message(status));
    return region;
  }
  std::ranges::sort(region.gpus);
  region.gpus.erase(std::unique(region.gpus.begin(), region.gpus.end()), region.gpus.end());
  return region;
}

std::vector<EgmRegion> ReadEgmRegions(const Tree& tree) {
  std::vector<EgmRegion> regions;
  absl::StatusOr<std::vector<std::string>> names = tree.List(kEgmClassDir);
  if (!names.ok()) return regions;
  std::erase_if(*names, [](const std::string& name) { return NumberOf(name) < 0; });
  std::ranges::sort(*names, {}, NumberOf);
  if (names->size() > kMostRegions) names->resize(kMostRegions);
  for (const std::string& name : *names) regions.push_back(ReadEgmRegion(tree, name));
  return regions;
}

}  // namespace vfio_agent
