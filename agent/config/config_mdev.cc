#include "agent/config/config_mdev.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/config/config_resources.h"
#include "iommu/mdev/mdev.h"
#include "iommu/policy/naming.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// More than any driver makes of one device.
constexpr int kMost = 1024;
constexpr std::string_view kVgpu = "vgpu";

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

// 1145: NVIDIA L40S-1B
absl::Status ReadNames(const YamlValue& value, MdevRule& rule) {
  if (value.kind != YamlValue::Kind::kMap) {
    return YamlError(value, "want NUMBER: NAME, such as 1145: NVIDIA L40S-1B");
  }
  for (const YamlEntry& entry : value.map) {
    int id = 0;
    if (!absl::SimpleAtoi(entry.key, &id) || id <= 0) {
      return YamlError(entry.value, "want a type's number as the key");
    }
    ASSIGN_OR_RETURN(const std::string name, ReadScalar(entry.value));
    const absl::Status status = CheckResourceName("nvidia.com/" + MdevTypeResourceName(name));
    if (!status.ok()) return YamlError(entry.value, Message(status));
    rule.names[id] = name;
  }
  return absl::OkStatus();
}

absl::StatusOr<MdevRule> ReadRule(const YamlValue& value, std::string_view section) {
  MdevRule rule;
  std::vector<YamlKey> keys = {
      {"parent", [&](const YamlValue& v) { return ReadSelectors(v, rule.parents); }},
      {"types", [&](const YamlValue& v) { return ReadTypes(v, rule); }},
      {"spread", [&](const YamlValue& v) { return ReadSpread(v, rule); }},
      {"domain", [&](const YamlValue& v) { return ReadDomain(v, rule); }},
      {"serve", [&](const YamlValue& v) { return ReadServe(v, rule.serve); }}};
  if (section == kVgpu) {
    keys.push_back({"names", [&](const YamlValue& v) { return ReadNames(v, rule); }});
  }
  RETURN_IF_ERROR(ReadMap(value, keys));
  const auto needs = [&](const char* key) {
    return YamlError(value, absl::StrFormat("an entry of %s needs %s:", section, key));
  };
  if (rule.parents.empty()) return needs("parent");
  if (rule.types.empty()) return needs("types");
  return rule;
}

absl::Status ReadRules(const YamlValue& value, std::string_view section,
                       std::vector<MdevRule>& rules) {
  rules.clear();
  return ReadList(value, [&](const YamlValue& item) -> absl::Status {
    ASSIGN_OR_RETURN(MdevRule rule, ReadRule(item, section));
    for (const MdevRule& other : rules) {
      for (const Selector& selector : rule.parents) {
        if (!std::ranges::count(other.parents, selector)) continue;
        return YamlError(
            item, absl::StrFormat("selects the same parent as an earlier entry of %s, which has it",
                                  section));
      }
    }
    rules.push_back(std::move(rule));
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status ReadMdevRules(const YamlValue& value, Policy& policy) {
  return ReadRules(value, "mdev", policy.mdev);
}

absl::Status ReadVgpuRules(const YamlValue& value, Policy& policy) {
  return ReadRules(value, kVgpu, policy.vgpu);
}

}  // namespace vfio_agent
