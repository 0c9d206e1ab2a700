#include "sysfs/holders.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kNodes = "/dev/vfio/";
constexpr std::string_view kCdevs = "devices/";

std::optional<int> GroupOfNode(std::string_view target, const NodeFacts& facts) {
  if (!target.starts_with(kNodes)) return std::nullopt;
  const std::string name(target.substr(kNodes.size()));
  int group = -1;
  if (absl::SimpleAtoi(name, &group)) return group;
  if (!std::string_view(name).starts_with(kCdevs)) return std::nullopt;
  const std::string cdev = name.substr(kCdevs.size());
  const auto device = std::ranges::find_if(
      facts.devices, [&cdev](const PciDevice& d) { return d.vfio_cdev == cdev; });
  return device == facts.devices.end() ? std::nullopt : device->group;
}

void AddHolder(std::vector<Holder>& holders, const Tree& tree, int pid) {
  if (std::ranges::count(holders, pid, &Holder::pid) != 0) return;
  const absl::StatusOr<std::string> command = tree.ReadText(absl::StrFormat("proc/%d/comm", pid));
  holders.push_back({.pid = pid, .command = command.ok() ? *command : "unknown"});
}

// The first process namespace has a fixed number (PROC_PID_INIT_INO, include/linux/proc_ns.h).
bool SeesAllProcesses(const Tree& tree) {
  if (!tree.is_host()) return true;
  const absl::StatusOr<std::string> name = tree.ReadLink("proc/self/ns/pid");
  return name.ok() && *name == "pid:[4026531836]";
}

}  // namespace

VfioHolders FindVfioHolders(const Tree& tree, const NodeFacts& facts) {
  VfioHolders holders{.complete = SeesAllProcesses(tree)};
  const absl::StatusOr<std::vector<std::string>> processes = tree.List("proc");
  if (!processes.ok()) return {.complete = false};
  for (const std::string& name : *processes) {
    int pid = 0;
    if (!absl::SimpleAtoi(name, &pid)) continue;
    const std::string dir = absl::StrFormat("proc/%d/fd", pid);
    const absl::StatusOr<std::vector<std::string>> descriptors = tree.List(dir);
    if (absl::IsPermissionDenied(descriptors.status())) holders.complete = false;
    if (!descriptors.ok()) continue;
    for (const std::string& descriptor : *descriptors) {
      const absl::StatusOr<std::string> target =
          tree.ReadLink(absl::StrFormat("%s/%s", dir, descriptor));
      const std::optional<int> group = target.ok() ? GroupOfNode(*target, facts) : std::nullopt;
      if (group) AddHolder(holders.by_group[*group], tree, pid);
    }
  }
  return holders;
}

bool IsGroupOpen(const Tree& tree, int group) {
  return ErrnoOf(tree.OpenAt(GroupNode(group), O_RDWR).status()) == EBUSY;
}

}  // namespace vfio_agent
