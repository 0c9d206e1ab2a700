#include "agent/doctor/kubelet_config.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "agent/config/yaml.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The value of `key`, or null: a file of the kubelet has many keys that are not our matter.
const YamlValue* FindKey(const YamlValue& map, std::string_view key) {
  const auto found = std::ranges::find(map.map, key, &YamlEntry::key);
  return found == map.map.end() ? nullptr : &found->value;
}

absl::Status ReadText(const YamlValue& map, std::string_view key, std::string& text) {
  const YamlValue* const value = FindKey(map, key);
  if (value == nullptr || value->kind == YamlValue::Kind::kNull) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string read, ReadScalar(*value));
  if (!read.empty()) text = Printable(read, 256);
  return absl::OkStatus();
}

absl::Status ReadBool(const YamlValue& map, std::string_view key, bool& flag) {
  std::string text;
  RETURN_IF_ERROR(ReadText(map, key, text));
  if (text.empty()) return absl::OkStatus();
  text = absl::AsciiStrToLower(text);
  if (text != "true" && text != "false") return YamlError(*FindKey(map, key), "want true or false");
  flag = text == "true";
  return absl::OkStatus();
}

absl::Status ReadKeys(const YamlValue& root, KubeletConfig& config) {
  RETURN_IF_ERROR(ReadBool(root, "failSwapOn", config.fail_swap_on));
  config.swap_told = config.swap_told || FindKey(root, "failSwapOn") != nullptr;
  RETURN_IF_ERROR(ReadText(root, "containerRuntimeEndpoint", config.runtime_endpoint));
  RETURN_IF_ERROR(ReadText(root, "cpuManagerPolicy", config.cpu_policy));
  RETURN_IF_ERROR(ReadText(root, "memoryManagerPolicy", config.memory_policy));
  RETURN_IF_ERROR(ReadText(root, "topologyManagerPolicy", config.topology_policy));
  if (const YamlValue* const swap = FindKey(root, "memorySwap")) {
    RETURN_IF_ERROR(ReadText(*swap, "swapBehavior", config.swap_behavior));
  }
  const YamlValue* const options = FindKey(root, "topologyManagerPolicyOptions");
  if (options != nullptr && FindKey(*options, "max-allowable-numa-nodes") != nullptr) {
    config.many_numa_nodes = true;
  }
  return absl::OkStatus();
}

// An error's text may quote keys of the file.
absl::Status Refused(const absl::Status& status) {
  return absl::InvalidArgumentError(Printable(Message(status), 256));
}

void Take(const KubeletFlags& flags, const std::string& name, std::string& text) {
  const auto flag = flags.find(name);
  if (flag != flags.end() && !flag->second.empty()) text = Printable(flag->second, 256);
}

// "fail-swap-on=false", also with dashes before it.
void AddKubeletArg(std::string_view word, KubeletFlags& flags) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  const size_t equals = word.find('=');
  if (word.empty() || equals == 0) return;
  flags[std::string(word.substr(0, equals))] =
      equals == std::string_view::npos ? "true" : std::string(word.substr(equals + 1));
}

}  // namespace

KubeletFlags ParseKubeletArgs(std::span<const std::string> words) {
  constexpr std::string_view kFlag = "--kubelet-arg";
  KubeletFlags flags;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with(kFlag)) continue;
    word.remove_prefix(kFlag.size());
    if (word.starts_with('=')) {
      AddKubeletArg(word.substr(1), flags);
    } else if (word.empty() && i + 1 < words.size()) {
      AddKubeletArg(words[++i], flags);
    }
  }
  return flags;
}

KubeletFlags ReadKubeletArgs(const std::string& text, const std::string& name) {
  KubeletFlags flags;
  const absl::StatusOr<YamlValue> root = ParseYaml(text, name);
  if (!root.ok()) return flags;
  for (const char* key : {"kubelet-arg", "kubelet-arg+"}) {
    const YamlValue* const value = FindKey(*root, key);
    if (value == nullptr) continue;
    // One may stand without a list.
    const std::vector<YamlValue> words =
        value->kind == YamlValue::Kind::kList ? value->list : std::vector<YamlValue>{*value};
    for (const YamlValue& word : words) AddKubeletArg(word.scalar, flags);
  }
  return flags;
}

KubeletFlags ParseKubeletFlags(std::span<const std::string> words) {
  KubeletFlags flags;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with("--")) continue;
    word.remove_prefix(2);
    const size_t equals = word.find('=');
    std::string value = "true";
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with('-')) {
      value = words[i + 1];
    }
    flags[std::string(word.substr(0, equals))] = std::move(value);
  }
  return flags;
}

absl::Status ReadKubeletConfig(const std::string& text, const std::string& name,
                               KubeletConfig& config) {
  const absl::StatusOr<YamlValue> root = ParseYaml(text, name);
  if (!root.ok()) return Refused(root.status());
  if (root->kind != YamlValue::Kind::kMap) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: has no keys and values", name));
  }
  KubeletConfig fresh = config;
  if (const absl::Status status = ReadKeys(*root, fresh); !status.ok()) return Refused(status);
  config = std::move(fresh);
  return absl::OkStatus();
}

void ApplyKubeletFlags(const KubeletFlags& flags, KubeletConfig& config) {
  std::string swap;
  Take(flags, "fail-swap-on", swap);
  if (!swap.empty()) {
    config.fail_swap_on = absl::AsciiStrToLower(swap) != "false" && swap != "0";
    config.swap_told = true;
  }
  Take(flags, "container-runtime-endpoint", config.runtime_endpoint);
  Take(flags, "cpu-manager-policy", config.cpu_policy);
  Take(flags, "memory-manager-policy", config.memory_policy);
  Take(flags, "topology-manager-policy", config.topology_policy);
  std::string options;
  Take(flags, "topology-manager-policy-options", options);
  if (options.find("max-allowable-numa-nodes") != std::string::npos) config.many_numa_nodes = true;
}

}  // namespace vfio_agent
