#include "sysfs/host/host_modules.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// A file of an earlier one hides one of the same name in a later one (modprobe.d(5)).
constexpr std::array kRuleDirs =
    std::to_array<std::string_view>({"etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d",
                                     "usr/lib/modprobe.d", "lib/modprobe.d"});
constexpr size_t kRulesLimit = size_t{256} * 1024;
constexpr size_t kMostRuleFiles = 512;

// The kernel and modprobe take '-' and '_' for the same.
std::string Spelt(std::string_view name) {
  std::string spelt(name);
  std::ranges::replace(spelt, '-', '_');
  return spelt;
}

// "kernel/drivers/vfio/pci/vfio-pci.ko.xz" is vfio_pci.
std::string ModuleOf(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return Spelt(path.substr(0, path.find(".ko")));
}

std::set<std::string> Listed(const Tree& tree, const std::string& path, bool& known) {
  std::set<std::string> names;
  const absl::StatusOr<std::string> text = ReadProcText(tree, path);
  known = text.ok();
  if (!known) return names;
  for (const std::string_view line : Lines(*text)) {
    names.insert(ModuleOf(line.substr(0, line.find(':'))));
  }
  return names;
}

// "install nouveau /bin/false": whoever loads it runs that command instead.
bool IsNoInstall(const std::vector<std::string_view>& words) {
  return std::ranges::any_of(words.begin() + 2, words.end(), [](std::string_view word) {
    return word.ends_with("/false") || word.ends_with("/true") || word == "false" || word == "true";
  });
}

void AddRule(std::string_view line, const std::string& place, HostModules& modules) {
  const std::optional<ModuleRule> rule = ParseModuleRule(line);
  if (!rule) return;
  const auto state = modules.states.find(rule->module);
  if (state == modules.states.end()) return;
  (rule->blocks ? state->second.blocked : state->second.blacklisted).push_back(place);
}

void ReadRules(const Tree& files, HostModules& modules) {
  std::set<std::string> seen;
  for (const std::string_view dir : kRuleDirs) {
    const absl::StatusOr<std::vector<std::string>> names = files.List(dir);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (!name.ends_with(".conf") || seen.size() >= kMostRuleFiles) continue;
      if (!seen.insert(name).second) continue;
      const std::string path = absl::StrFormat("%s/%s", dir, name);
      const absl::StatusOr<std::string> text = ReadProcText(files, path, kRulesLimit);
      if (!text.ok()) {
        modules.rules_known = false;  // a part of the rules is not all of them
        continue;
      }
      for (const std::string_view line : Lines(*text)) {
        AddRule(line, "/" + Printable(path), modules);
      }
    }
  }
}

// "module_blacklist=" is the kernel's own and final; "modprobe.blacklist=" is as in modprobe.d.
void ReadCommandLine(std::string_view command_line, HostModules& modules) {
  constexpr std::string_view kFinal = "module_blacklist=";
  constexpr std::string_view kSoft = "modprobe.blacklist=";
  for (const std::string_view word : Fields(command_line)) {
    const bool final = word.starts_with(kFinal);
    if (!final && !word.starts_with(kSoft)) continue;
    for (const std::string_view name : Split(word.substr(word.find('=') + 1), ',')) {
      const auto state = modules.states.find(Spelt(name));
      if (state == modules.states.end()) continue;
      (final ? state->second.blocked : state->second.blacklisted)
          .emplace_back("the kernel command line");
    }
  }
}

}  // namespace

std::optional<ModuleRule> ParseModuleRule(std::string_view line) {
  const std::vector<std::string_view> words = Fields(line);
  if (words.size() < 2) return std::nullopt;
  const bool blocks = words[0] == "install" && IsNoInstall(words);
  if (!blocks && words[0] != "blacklist") return std::nullopt;
  return ModuleRule{.module = Spelt(words[1]), .blocks = blocks};
}

HostModules ReadHostModules(const Tree& tree, const Tree* files, std::string_view command_line,
                            std::span<const std::string_view> names) {
  HostModules modules;
  const absl::StatusOr<std::string> release = tree.ReadText(kKernelRelease);
  const bool usable = release.ok() && !release->empty() && release->find('/') == release->npos;
  bool built_in_known = false;
  std::set<std::string> installed;
  std::set<std::string> built_in;
  if (usable) {
    installed = Listed(tree, ModulesFile(*release, "modules.dep"), modules.lists_known);
    built_in = Listed(tree, ModulesFile(*release, "modules.builtin"), built_in_known);
  }
  for (const std::string_view name : names) {
    const std::string module(name);
    modules.states[module] = {.loaded = tree.Exists("sys/module/" + module),
                              .built_in = built_in.contains(module),
                              .installed = installed.contains(module)};
  }
  const absl::StatusOr<std::string> off = tree.ReadText("proc/sys/kernel/modules_disabled");
  modules.loading_off = off.ok() && *off == "1";
  modules.rules_known = files != nullptr;
  if (files != nullptr) ReadRules(*files, modules);
  ReadCommandLine(command_line, modules);
  return modules;
}

}  // namespace vfio_agent
