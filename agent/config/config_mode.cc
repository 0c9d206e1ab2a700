#include "agent/config/config_mode.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongestName = 63;     // of a label's name and of its value
constexpr size_t kLongestPrefix = 253;  // "nvidia.com"
constexpr char kDefaultLabelMode[] = "container";

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// What a label's value and the name in its key may be; a value may also be empty.
bool IsLabelWord(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && IsAlnum(text.front()) &&
         IsAlnum(text.back()) && std::ranges::all_of(text, [](char c) {
           return IsAlnum(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsLabelPrefix(std::string_view text) {
  return !text.empty() && text.size() <= kLongestPrefix && IsAlnum(text.front()) &&
         IsAlnum(text.back()) && std::ranges::all_of(text, [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.';
         });
}

absl::Status ReadLabelKey(const YamlValue& value, ModeRule& rule) {
  ASSIGN_OR_RETURN(rule.label, ReadScalar(value));
  const std::string_view key = rule.label;
  const size_t slash = key.find('/');
  const bool good = slash == std::string_view::npos
                        ? IsLabelWord(key)
                        : IsLabelPrefix(key.substr(0, slash)) && IsLabelWord(key.substr(slash + 1));
  if (good) return absl::OkStatus();
  return YamlError(
      value, absl::StrFormat("'%s': want a label's key, such as nvidia.com/gpu.workload.config",
                             rule.label));
}

absl::StatusOr<Mode> ReadModeName(const YamlValue& value) {
  ASSIGN_OR_RETURN(const std::string name, ReadScalar(value));
  if (const std::optional<Mode> mode = FindMode(name)) return *mode;
  return YamlError(value, absl::StrFormat("'%s': want container, vm-passthrough or vm-vgpu", name));
}

absl::StatusOr<absl::Duration> ReadDuration(const YamlValue& value, absl::Duration longest) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration() &&
      duration <= longest) {
    return duration;
  }
  return YamlError(value, absl::StrFormat("'%s': want a duration from 0s to %s, such as 10s", text,
                                          absl::FormatDuration(longest)));
}

// A value that stands for a mode; each for one only.
absl::Status AddValue(const YamlValue& value, Mode mode, ModeRule& rule) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (!IsLabelWord(text)) return YamlError(value, absl::StrFormat("'%s': no label's value", text));
  const auto [entry, fresh] = rule.values.emplace(text, mode);
  if (fresh || entry->second == mode) return absl::OkStatus();
  return YamlError(value, absl::StrFormat("'%s' stands for %s already", text, Name(entry->second)));
}

absl::Status ReadValues(const YamlValue& value, ModeRule& rule) {
  std::vector<YamlKey> keys;
  for (const Mode mode : {Mode::kContainer, Mode::kPassthrough, Mode::kVgpu}) {
    keys.push_back({Name(mode), [&rule, mode](const YamlValue& list) {
                      return ReadList(
                          list, [&](const YamlValue& item) { return AddValue(item, mode, rule); });
                    }});
  }
  return ReadMap(value, keys);
}

absl::Status ReadLabelMode(const YamlValue& value, ModeRule& rule) {
  rule.mode = *FindMode(kDefaultLabelMode);
  for (const Mode mode : {Mode::kContainer, Mode::kPassthrough, Mode::kVgpu}) {
    rule.values.emplace(Name(mode), mode);
  }
  RETURN_IF_ERROR(ReadMap(
      value, {{"fromNodeLabel", [&](const YamlValue& v) { return ReadLabelKey(v, rule); }},
              {"default",
               [&](const YamlValue& v) -> absl::Status {
                 ASSIGN_OR_RETURN(rule.mode, ReadModeName(v));
                 return absl::OkStatus();
               }},
              {"values", [&](const YamlValue& v) { return ReadValues(v, rule); }},
              {"settle",
               [&](const YamlValue& v) -> absl::Status {
                 ASSIGN_OR_RETURN(rule.settle, ReadDuration(v, absl::Hours(1)));
                 return absl::OkStatus();
               }},
              {"waitForHolders", [&](const YamlValue& v) -> absl::Status {
                 ASSIGN_OR_RETURN(rule.wait_for_holders, ReadDuration(v, absl::Hours(24 * 7)));
                 return absl::OkStatus();
               }}}));
  if (rule.label.empty()) return YamlError(value, "want a mode's name, or fromNodeLabel:");
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMode(const YamlValue& value, ModeRule& rule) {
  rule = {};
  if (value.kind == YamlValue::Kind::kMap) return ReadLabelMode(value, rule);
  ASSIGN_OR_RETURN(rule.mode, ReadModeName(value));
  return absl::OkStatus();
}

}  // namespace vfio_agent
