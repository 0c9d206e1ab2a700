#include "agent/config/config_mdev.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/config/config_resources.h"
#include "iommu/naming.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// More than any driver makes of one device.
constexpr int kMost = 1024;

absl::StatusOr<int> ReadCount(const YamlValue& value) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  int count = -1;
  if (absl::SimpleAtoi(text, &count) && count >= 0 && count <= kMost) return count;
  return YamlError(value, absl::StrFormat("'%s': want a number from 0 to %d", text, kMost));
}

// A type is named as the kernel does: as a directory it must not lead elsewhere.
absl::Status ReadTypes(const YamlValue& value, MdevRule& rule) {
  if (value.kind != YamlValue::Kind::kMap) {
    return YamlError(value, "want TYPE: COUNT, such as \"GRID T4-1Q\": 4");
  }
  for (const YamlEntry& entry : value.map) {
    if (entry.key.empty() || entry.key.find('/') != std::string::npos) {
      return YamlError(entry.value, "want a type's name or its directory as the key");
    }
    ASSIGN_OR_RETURN(const int count, ReadCount(entry.value));
    rule.types.push_back({.type = entry.key, .count = count});
  }
  return absl::OkStatus();
}

absl::Status ReadSpread(const YamlValue& value, MdevRule& rule) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "each" && text != "round-robin" && text != "numa") {
    return WordError(value, text, {"each", "round-robin", "numa"});
  }
  rule.spread = text == "each"   ? MdevSpread::kEach
                : text == "numa" ? MdevSpread::kNuma
                                 : MdevSpread::kRoundRobin;
  return absl::OkStatus();
}

absl::Status ReadDomain(const YamlValue& value, MdevRule& rule) {
  ASSIGN_OR_RETURN(rule.domain, ReadScalar(value));
  const absl::Status status = CheckResourceName(rule.domain + "/TYPE");
  return status.ok() ? status : YamlError(value, Message(status));
}

absl::StatusOr<MdevRule> ReadRule(const YamlValue& value) {
  MdevRule rule;
  RETURN_IF_ERROR(ReadMap(
      value, {{"parent", [&](const YamlValue& v) { return ReadSelectors(v, rule.parents); }},
              {"types", [&](const YamlValue& v) { return ReadTypes(v, rule); }},
              {"spread", [&](const YamlValue& v) { return ReadSpread(v, rule); }},
              {"domain", [&](const YamlValue& v) { return ReadDomain(v, rule); }}}));
  if (rule.parents.empty()) return YamlError(value, "an entry of mdev needs parent:");
  if (rule.types.empty()) return YamlError(value, "an entry of mdev needs types:");
  return rule;
}

}  // namespace

absl::Status ReadMdevRules(const YamlValue& value, Policy& policy) {
  policy.mdev.clear();
  return ReadList(value, [&](const YamlValue& item) -> absl::Status {
    ASSIGN_OR_RETURN(MdevRule rule, ReadRule(item));
    for (const MdevRule& other : policy.mdev) {
      for (const Selector& selector : rule.parents) {
        if (!std::ranges::count(other.parents, selector)) continue;
        return YamlError(item, "selects the same parent as an earlier entry of mdev, which has it");
      }
    }
    policy.mdev.push_back(std::move(rule));
    return absl::OkStatus();
  });
}

}  // namespace vfio_agent
