#include "agent/outlets/nfd.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {
namespace {

constexpr char kPrefix[] = "vfio-agent/";
constexpr char kUnits[] = ".units";
constexpr char kHealthy[] = ".healthy";
constexpr size_t kLongestName = 63;  // of a label, without its prefix

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// What follows the resource's slash is a label's name already, but may be too long with a suffix.
std::string LabelStem(const std::string& resource) {
  std::string stem = resource.substr(resource.find('/') + 1);
  stem = stem.substr(0, kLongestName - (sizeof(kHealthy) - 1));
  std::ranges::replace_if(
      stem, [](char c) { return !IsAlnum(c) && c != '-' && c != '_' && c != '.'; }, '_');
  while (!stem.empty() && !IsAlnum(stem.back())) stem.pop_back();
  return stem;
}

struct Counts {
  size_t units = 0;
  size_t healthy = 0;
};

Counts Count(const Offer& offer) {
  Counts counts;
  for (const OfferedUnit& unit : offer.units) {
    if (unit.withdrawn != absl::InfiniteFuture()) continue;
    ++counts.units;
    if (unit.healthy) ++counts.healthy;
  }
  return counts;
}

// A resource that is to be served otherwise from now on has two offers for a while.
std::vector<std::pair<std::string, Counts>> CountAll(const std::vector<Offer>& offers) {
  std::vector<std::pair<std::string, Counts>> all;
  for (const Offer& offer : offers) {
    auto found = std::ranges::find(all, offer.resource, &std::pair<std::string, Counts>::first);
    if (found == all.end()) found = all.insert(all.end(), {offer.resource, Counts()});
    const Counts counts = Count(offer);
    found->second.units += counts.units;
    found->second.healthy += counts.healthy;
  }
  return all;
}

std::string LabelsOf(const std::string& stem, const Counts& counts) {
  return absl::StrFormat("%s%s%s=%d\n%s%s%s=%d\n", kPrefix, stem, kUnits, counts.units, kPrefix,
                         stem, kHealthy, counts.healthy);
}

// The kind, where translation is on; else why there is none: "off", "noiommu" or "unknown".
std::string IommuLabel(const IommuFacts& iommu) {
  return std::string(iommu.state == IommuState::kOn ? Name(iommu.kind) : Name(iommu.state));
}

}  // namespace

std::string ModeLabels(const ModeStatus& mode) {
  return absl::StrFormat("%smode=%s\n%smode.state=%s\n", kPrefix, mode.mode, kPrefix, mode.state);
}

NfdLabels MakeNfdLabels(const IommuFacts& iommu, const std::vector<Offer>& offers, std::string more,
                        size_t limit) {
  NfdLabels labels;
  const bool ready =
      std::ranges::any_of(offers, [](const Offer& offer) { return Count(offer).healthy > 0; });
  labels.text = absl::StrFormat("%spassthrough.ready=%s\n%siommu=%s\n", kPrefix,
                                ready ? "true" : "false", kPrefix, IommuLabel(iommu)) +
                more;
  std::set<std::string> stems;
  for (const auto& [resource, counts] : CountAll(offers)) {
    const std::string stem = LabelStem(resource);
    const std::string text = LabelsOf(stem, counts);
    if (stem.empty() || !stems.insert(stem).second) {
      labels.problems.push_back(
          absl::StrFormat("%s: another resource has the labels %s%s.*", resource, kPrefix, stem));
    } else if (labels.text.size() + text.size() > limit) {
      labels.problems.push_back(absl::StrFormat(
          "%s and those after it: NFD takes no file of more than 64 KiB", resource));
      break;
    } else {
      labels.text += text;
    }
  }
  return labels;
}

absl::Duration NfdValidity(absl::Duration resync) {
  return std::max(3 * resync, absl::Minutes(10));
}

std::string NfdText(const std::string& labels, absl::Time expiry) {
  return absl::StrFormat("# +expiry-time=%s\n%s",
                         absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", expiry, absl::UTCTimeZone()),
                         labels);
}

}  // namespace vfio_agent
