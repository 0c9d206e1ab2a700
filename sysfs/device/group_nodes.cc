#include "sysfs/device/group_nodes.h"

#include "absl/strings/str_format.h"
#include "sysfs/device/mdev.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {

std::string MemberDir(const std::string& member) {
  return IsUuid(member) ? MdevDir(member) : absl::StrFormat("%s/%s", kDevicesDir, member);
}

std::string ReadCdev(const Tree& tree, const std::string& dir) {
  const auto names = tree.List(dir + "/vfio-dev");
  return names.ok() && !names->empty() ? names->front() : "";
}

std::vector<std::string> GroupCdevs(const Tree& tree, int group) {
  std::vector<std::string> nodes;
  const auto members = tree.List(GroupFile(group, "devices"));
  if (!members.ok()) return nodes;
  for (const std::string& member : *members) {
    const std::string cdev = ReadCdev(tree, MemberDir(member));
    const std::string name = "devices/" + cdev;
    if (!cdev.empty() && tree.Exists(absl::StrFormat("%s/%s", kVfioNodesDir, name))) {
      nodes.push_back(name);
    }
  }
  return nodes;
}

}  // namespace vfio_agent
