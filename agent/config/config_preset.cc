#include "agent/config/config_preset.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/usage/suggest.h"
#include "iommu/policy/naming.h"
#include "iommu/policy/preset.h"
#include "sysfs/status.h"

namespace vfio_agent {

absl::Status ApplyPreset(const YamlValue& entry, ResourceRule& rule) {
  const auto key = std::ranges::find(entry.map, "preset", &YamlEntry::key);
  if (key == entry.map.end() || key->value.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string name, ReadScalar(key->value));
  if (name.empty()) return absl::OkStatus();
  if (const Preset* const preset = FindPreset(name)) {
    rule = RuleOf(*preset);
    return absl::OkStatus();
  }
  std::vector<std::string> known;
  for (const Preset& preset : Presets()) known.emplace_back(preset.name);
  return YamlError(key->value,
                   absl::StrFormat("'%s': want one of %s%s", name, absl::StrJoin(known, ", "),
                                   DidYouMean(name, known)));
}

absl::Status ReadSuffix(const YamlValue& value, ResourceRule& rule) {
  rule.suffix.clear();
  if (value.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  ASSIGN_OR_RETURN(rule.suffix, ReadScalar(value));
  const absl::Status status = CheckResourceName(rule.domain + "/MODEL" + rule.suffix);
  return status.ok() ? status : YamlError(value, Message(status));
}

absl::Status ReadNuma(const YamlValue& value, ResourceRule& rule) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "true" && text != "false" && text != "nearest") {
    return WordError(value, text, {"true", "false", "nearest"});
  }
  rule.numa = text != "false";
  rule.numa_nearest = text == "nearest";
  return absl::OkStatus();
}

absl::Status ReadNoiommu(const YamlValue& value, ResourceRule& rule) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "true" && text != "false") {
    return WordError(value, text, {"true", "false"});
  }
  rule.noiommu = text == "true";
  return absl::OkStatus();
}

}  // namespace vfio_agent
