#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "agent/snapshot/mask_text.h"
#include "agent/text/json.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr std::array kPrograms = std::to_array<std::string_view>(
    {"kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent", "rke2", "hyperkube"});
constexpr std::array kFlags = std::to_array<std::string_view>(
    {"--config", "--config-dir", "--root-dir", "--fail-swap-on", "--container-runtime-endpoint",
     "--cpu-manager-policy", "--memory-manager-policy", "--topology-manager-policy",
     "--topology-manager-scope", "--reserved-memory", "--system-reserved", "--kube-reserved"});
constexpr std::array kPathFlags = std::to_array<std::string_view>(
    {"--config", "--config-dir", "--root-dir", "--container-runtime-endpoint"});
constexpr std::array kKeys = std::to_array<std::string_view>(
    {"apiVersion", "kind", "failSwapOn", "memorySwap", "swapBehavior", "containerRuntimeEndpoint",
     "cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy", "topologyManagerScope"});

constexpr std::string_view kNested = "swapBehavior";
constexpr std::string_view kEndpoint = "containerRuntimeEndpoint";

template <size_t size>
bool Has(const std::array<std::string_view, size>& list, std::string_view word) {
  return std::ranges::count(list, word) != 0;
}

// A path, or "unix://" and one.
std::string MaskEndpoint(std::string_view value, Masker& masker) {
  const size_t scheme = value.find("://");
  const size_t start = scheme == std::string_view::npos ? 0 : scheme + 3;
  return std::string(value.substr(0, start)) + MaskPath(value.substr(start), masker);
}

std::string MaskFlag(const std::string& flag, Masker& masker) {
  const size_t value = flag.find('=') + 1;  // npos + 1 is 0
  if (value == 0 || !Has(kPathFlags, std::string_view(flag).substr(0, value - 1))) return flag;
  return flag.substr(0, value) + MaskEndpoint(std::string_view(flag).substr(value), masker);
}

// "--flag=value" of the known flags; the value may have been a word of its own.
std::vector<std::string> FlagsOf(const std::vector<std::string_view>& words, Masker& masker) {
  std::vector<std::string> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const size_t equals = word.find('=');
    if (!Has(kFlags, word.substr(0, equals))) continue;
    flags.emplace_back(word);
    const bool apart =
        equals == std::string_view::npos && i + 1 < words.size() && !words[i + 1].starts_with('-');
    if (apart) flags.back() += "=" + std::string(words[++i]);
    flags.back() = MaskFlag(flags.back(), masker);
  }
  return flags;
}

// A line "key: value"; the key of one that is indented too.
std::string_view KeyOf(std::string_view line) {
  const size_t start = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(start, line.find(':') - start);
}

// Without a comment; where a value is a path, with another one.
std::string MaskLine(std::string_view line, Masker& masker) {
  line = line.substr(0, line.find(" #"));
  if (KeyOf(line) != kEndpoint) return std::string(line);
  std::string value(line.substr(std::min(line.find(':') + 1, line.size())));
  std::erase_if(value, [](char c) { return c == ' ' || c == '"' || c == '\''; });
  return absl::StrFormat("%s: %s", kEndpoint, MaskEndpoint(value, masker));
}

}  // namespace

std::string KeepKubeletArguments(std::string_view cmdline, Masker& masker) {
  const bool line = cmdline.ends_with('\n');
  if (line) cmdline.remove_suffix(1);
  const std::vector<std::string_view> words = Split(cmdline, '\0');
  if (words.empty()) return "";
  const std::string_view program = words[0].substr(words[0].rfind('/') + 1);
  if (!Has(kPrograms, program)) return "";
  std::string kept = std::string(program) + '\0';
  for (const std::string& flag : FlagsOf(words, masker)) kept += flag + '\0';
  return kept;
}

std::string KeepKubeletFlags(std::string_view unit, Masker& masker) {
  std::string kept;
  for (const std::string_view line : Lines(unit)) {
    if (line.starts_with('#')) continue;
    std::string plain(line);
    // NAME="--flag --flag"
    std::ranges::replace_if(
        plain, [](char c) { return c == '"' || c == '\''; }, ' ');
    std::vector<std::string_view> words = Fields(plain);
    for (std::string_view& word : words) {
      const size_t flag = word.find("=--");
      if (!word.starts_with('-') && flag != std::string_view::npos) word.remove_prefix(flag + 1);
    }
    for (const std::string& flag : FlagsOf(words, masker)) kept += flag + "\n";
  }
  return kept;
}

std::string KeepKubeletKeys(std::string_view config, Masker& masker) {
  const Json document = Json::parse(config, nullptr, /*allow_exceptions=*/false);
  std::string kept;
  if (!document.is_object()) {
    for (const std::string_view line : Lines(config)) {
      // Below another key it would be another one's.
      const bool nested = line.starts_with(' ');
      const std::string_view key = KeyOf(line);
      if (Has(kKeys, key) && nested == (key == kNested)) kept += MaskLine(line, masker) + "\n";
    }
    return kept;
  }
  Json known = Json::object();
  for (const auto& [key, value] : document.items()) {
    if (!Has(kKeys, key)) continue;
    const bool path = key == kEndpoint && value.is_string();
    known[key] = path ? Json(MaskEndpoint(value.get<std::string>(), masker)) : value;
  }
  return DumpJson(known);
}

std::string KeepPolicy(std::string_view state, Masker& masker) {
  const Json document = Json::parse(state, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return EmptyObject(state, masker);
  Json known = Json::object();
  if (document.contains("policyName")) known["policyName"] = document["policyName"];
  return DumpJson(known);
}

std::string EmptyObject(std::string_view json, Masker& /*masker*/) {
  // What is broken stays so.
  return Json::accept(json) ? "{}\n" : "{\n";
}

}  // namespace vfio_agent
