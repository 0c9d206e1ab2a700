#include "sysfs/host/module_facts.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr size_t kModulesFileLimit = 16u << 20;
constexpr std::string_view kAliasStart = "alias vfio_pci:";

std::string ReadModules(const Tree& tree, const std::string& release, const char* name) {
  const auto text = tree.ReadText(ModulesFile(release, name), kModulesFileLimit);
  return text.ok() ? *text : std::string();
}

bool Lists(const std::string& text, std::string_view module) {
  for (const char* ending : {".ko:", ".ko\n", ".ko.xz:", ".ko.zst:", ".ko.gz:", ".ko"}) {
    const std::string wanted = absl::StrFormat("/%s%s", module, ending);
    const size_t at = text.find(wanted);
    if (at == std::string::npos) continue;
    if (std::string_view(ending) != ".ko" || at + wanted.size() == text.size()) return true;
  }
  return false;
}

// A module's name becomes part of paths and of the commands that are printed.
bool IsModuleName(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-';
  });
}

// "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci"
std::vector<VfioAlias> ParseAliases(const std::string& text) {
  std::vector<VfioAlias> aliases;
  for (const auto& line : absl::StrSplit(text, '\n')) {
    if (!std::string_view(line.data(), line.size()).starts_with(kAliasStart)) continue;
    const std::vector<std::string> field = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (field.size() != 3 || !IsModuleName(field[2])) continue;
    const std::string pattern = "pci:" + field[1].substr(std::string_view("vfio_pci:").size());
    aliases.push_back({.pattern = pattern, .module = field[2]});
  }
  return aliases;
}

}  // namespace

ModuleFacts ReadModuleFacts(const Tree& tree) {
  ModuleFacts facts;
  const absl::StatusOr<std::string> release = tree.ReadText(kKernelRelease);
  if (!release.ok() || release->empty() || release->find('/') != std::string::npos) return facts;
  facts.release = *release;
  facts.vfio_pci_installed = Lists(ReadModules(tree, facts.release, "modules.dep"), "vfio-pci") ||
                             Lists(ReadModules(tree, facts.release, "modules.builtin"), "vfio-pci");
  facts.vfio_aliases = ParseAliases(ReadModules(tree, facts.release, "modules.alias"));
  return facts;
}

}  // namespace vfio_agent
