// HostModules: which kernel modules are there, and what keeps them from being loaded.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfio_agent {

class Tree;

struct ModuleState {
  bool loaded = false;  // sys/module/<name>; some that are built in have no such directory
  bool built_in = false;
  bool installed = false;                // can be loaded, as modules.dep says
  std::vector<std::string> blacklisted;  // places: not loaded for a device that fits
  std::vector<std::string> blocked;      // places: not loaded even by name
  bool IsThere() const { return loaded || built_in; }
  bool operator==(const ModuleState&) const = default;
};

struct HostModules {
  std::map<std::string, ModuleState> states;  // one for each that was asked for
  bool lists_known = false;                   // modules.dep of the running kernel was there
  bool rules_known = false;                   // modprobe.d was looked at
  bool loading_off = false;                   // proc/sys/kernel/modules_disabled
  bool operator==(const HostModules&) const = default;
};

// A line of modprobe.d that keeps a module from being loaded.
struct ModuleRule {
  std::string module;   // with underscores
  bool blocks = false;  // by its name as well, not only for a device that fits
};
std::optional<ModuleRule> ParseModuleRule(std::string_view line);

// `names` with underscores. `files`: the tree with the host's modprobe.d; null where it cannot be
// seen. `command_line`: the kernel's.
HostModules ReadHostModules(const Tree& tree, const Tree* files, std::string_view command_line,
                            std::span<const std::string_view> names);

}  // namespace vfio_agent
