#include "sysfs/holders.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
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

}  // namespace

VfioHolders FindVfioHolders(const Tree& tree, const NodeFacts& facts) {
  VfioHolders holders;
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
      const absl::StatusOr<std::string> target = tree.ReadLink(dir + "/" + descriptor);
      if (!target.ok()) continue;
      if (const auto group = GroupOfNode(*target, facts)) {
        AddHolder(holders.by_group[*group], tree, pid);
      }
    }
  }
  return holders;
}

}  // namespace vfio_agent
