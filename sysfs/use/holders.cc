#include "sysfs/use/holders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/device/group_nodes.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/use/cgroup_owner.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kDev = "/dev/";

// What a descriptor is open on, as far as it is a device node.
struct Target {
  std::optional<dev_t> number;
  bool block = false;
  std::string name;  // empty where it was not read
};

bool Gone(int error) { return error == ENOENT || error == ESRCH; }

// proc puts this behind the name of a node that was removed or made anew meanwhile.
std::string WithoutDeleted(std::string name) {
  if (name.ends_with(kDeleted)) name.resize(name.size() - kDeleted.size());
  return name;
}

// "/run/nvidia/driver/dev/nvidia0" has the name "nvidia0".
bool HasName(std::string_view path, const std::string& name) {
  const size_t dev = path.find(kDev);
  if (dev == std::string_view::npos) return false;
  const std::string_view rest = path.substr(dev + kDev.size() - 1);
  return rest.size() > name.size() && rest.ends_with(name) &&
         rest[rest.size() - name.size() - 1] == '/';
}

std::string FdPath(int pid, const std::string& descriptor) {
  return absl::StrFormat("proc/%d/fd/%s", pid, descriptor);
}

// "c 195:0": what a recorded tree has in place of the device that a descriptor is open on.
std::string NodeText(const Target& target) {
  return absl::StrFormat("%c %d:%d", target.block ? 'b' : 'c', ::major(*target.number),
                         ::minor(*target.number));
}

bool ParseNode(std::string_view text, Target& target) {
  if (!text.starts_with("c ") && !text.starts_with("b ")) return false;
  target.block = text.starts_with('b');
  target.number = ParseDeviceNumber(text.substr(2));
  return target.number.has_value();
}

// What a record says of the node that it was taken on.
constexpr char kProcesses[] = "processes";
constexpr char kDescriptors[] = "descriptors";

bool IsHidden(const Tree& tree, const char* what) {
  return tree.watch() != nullptr && tree.watch()->NoteOf(ReadKind::kHidden, what).has_value();
}

void TellHidden(const Tree& tree, const char* what) {
  if (tree.watch() != nullptr) tree.watch()->Tell(ReadKind::kHidden, what, "yes");
}

// One walk over all processes.
class Walk {
 public:
  Walk(const Tree& tree, const std::vector<DeviceNode>& nodes) : tree_(tree), nodes_(nodes) {
    found_.by_node.resize(nodes.size());
    found_.complete = SeesAllProcesses(tree) && !IsHidden(tree, kDescriptors);
    by_name_ = std::ranges::any_of(nodes, [](const DeviceNode& n) { return !n.number; });
  }

  NodeHolders Run() && {
    const absl::StatusOr<std::vector<std::string>> processes = tree_.List("proc");
    found_.complete = found_.complete && processes.ok();
    for (const std::string& name : processes.ok() ? *processes : std::vector<std::string>()) {
      int pid = 0;
      if (absl::SimpleAtoi(name, &pid)) LookAt(pid);
    }
    if (!found_.complete) TellHidden(tree_, kDescriptors);
    return std::move(found_);
  }

 private:
  void LookAt(int pid) {
    const absl::StatusOr<TreeDir> dir = TreeDir::Open(tree_, absl::StrFormat("proc/%d/fd", pid));
    const absl::StatusOr<std::vector<Entry>> entries =
        dir.ok() ? dir->List() : absl::StatusOr<std::vector<Entry>>(dir.status());
    // A process that has ended meanwhile holds nothing.
    if (!entries.ok() && !Gone(ErrnoOf(entries.status()))) found_.complete = false;
    if (!entries.ok()) return;
    for (const Entry& entry : *entries) {
      const std::optional<Target> target =
          tree_.is_host() ? OnHost(dir->fd(), entry.name.c_str()) : Below(pid, entry.name);
      if (target) Match(pid, entry.name, *target);
    }
  }

  // Following the descriptor's link leads to the open file itself, in whichever mount namespace
  // it was opened. The file systems of other descriptors are not asked (AT_STATX_DONT_SYNC): a
  // dead NFS or FUSE server would keep this process waiting.
  std::optional<Target> OnHost(int dir, const char* descriptor) {
    struct statx file = {};
    if (::statx(dir, descriptor, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &file) != 0) {
      if (errno == EACCES || errno == EPERM) found_.complete = false;
      return std::nullopt;
    }
    if (!S_ISCHR(file.stx_mode) && !S_ISBLK(file.stx_mode)) return std::nullopt;
    Target target{.number = ::makedev(file.stx_rdev_major, file.stx_rdev_minor),
                  .block = S_ISBLK(file.stx_mode)};
    std::array<char, PATH_MAX> name;
    const ssize_t n = by_name_ ? ::readlinkat(dir, descriptor, name.data(), name.size()) : 0;
    if (n > 0) target.name = WithoutDeleted(std::string(name.data(), static_cast<size_t>(n)));
    return target;
  }

  std::optional<Target> Below(int pid, const std::string& descriptor) const {
    const absl::StatusOr<std::string> name = NameOf(pid, descriptor);
    if (!name.ok() || !name->starts_with('/')) return std::nullopt;
    Target target{.name = *name};
    if (tree_.watch() != nullptr) {
      const auto known = tree_.watch()->NoteOf(ReadKind::kNode, FdPath(pid, descriptor));
      if (known && ParseNode(*known, target)) return target;
    }
    const absl::StatusOr<Fd> node = tree_.OpenAt(name->substr(1), O_PATH);
    struct stat file = {};
    if (node.ok() && ::fstat(node->get(), &file) == 0 &&
        (S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode))) {
      target.number = file.st_rdev;
      target.block = S_ISBLK(file.st_mode);
    }
    return target;
  }

  absl::StatusOr<std::string> NameOf(int pid, const std::string& descriptor) const {
    absl::StatusOr<std::string> name = tree_.ReadLink(FdPath(pid, descriptor));
    if (name.ok()) name = WithoutDeleted(*std::move(name));
    return name;
  }

  void Match(int pid, const std::string& descriptor, const Target& target) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const DeviceNode& node = nodes_[i];
      const bool numbers = node.number && target.number;
      const bool same = numbers ? *node.number == *target.number && node.block == target.block
                                : HasName(target.name, node.name);
      if (same) Add(i, pid, descriptor, target);
    }
  }

  void Add(size_t node, int pid, const std::string& descriptor, const Target& target) {
    std::vector<Holder>& holders = found_.by_node[node];
    if (!holders.empty() && holders.back().pid == pid) return;
    if (tree_.watch() != nullptr && target.number) {
      tree_.watch()->Tell(ReadKind::kNode, FdPath(pid, descriptor), NodeText(target));
    }
    const absl::StatusOr<std::string> command =
        tree_.ReadText(absl::StrFormat("proc/%d/comm", pid));
    const absl::StatusOr<std::string> cgroup =
        ReadProcText(tree_, absl::StrFormat("proc/%d/cgroup", pid), size_t{64} * 1024);
    const absl::StatusOr<std::string> name = NameOf(pid, descriptor);
    holders.push_back({.pid = pid,
                       .command = command.ok() ? Printable(*command) : "unknown",
                       .pod = cgroup.ok() ? CgroupOwner(*cgroup) : "",
                       .node = name.ok() ? Printable(*name) : "/dev/" + nodes_[node].name});
  }

  const Tree& tree_;
  const std::vector<DeviceNode>& nodes_;
  NodeHolders found_;
  bool by_name_ = false;  // names are read only where a number is not known
};

DeviceNode NodeOf(const Tree& tree, std::string name, const std::string& attribute) {
  const absl::StatusOr<std::string> number = tree.ReadText(attribute);
  return {.name = std::move(name),
          .number = number.ok() ? ParseDeviceNumber(*number) : std::nullopt};
}

}  // namespace

std::optional<dev_t> ParseDeviceNumber(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> major = ParseNumber(text.substr(0, colon), 10);
  const std::optional<uint64_t> minor = ParseNumber(text.substr(colon + 1), 10);
  if (!major || !minor || *major > UINT32_MAX || *minor > UINT32_MAX) return std::nullopt;
  return ::makedev(static_cast<unsigned>(*major), static_cast<unsigned>(*minor));
}

// The first process namespace has a fixed number (PROC_PID_INIT_INO, include/linux/proc_ns.h).
bool SeesAllProcesses(const Tree& tree) {
  bool all = !IsHidden(tree, kProcesses);
  if (tree.is_host()) {
    const absl::StatusOr<std::string> name = tree.ReadLink("proc/self/ns/pid");
    all = name.ok() && *name == "pid:[4026531836]";
  }
  if (!all) TellHidden(tree, kProcesses);
  return all;
}

NodeHolders FindHolders(const Tree& tree, const std::vector<DeviceNode>& nodes) {
  return Walk(tree, nodes).Run();
}

std::vector<DeviceNode> GroupNodes(const Tree& tree, const NodeFacts& facts, int group) {
  std::vector<DeviceNode> nodes;
  for (const char* prefix : {"", "noiommu-"}) {
    const std::string name = absl::StrFormat("%s%d", prefix, group);
    nodes.push_back(NodeOf(tree, "vfio/" + name, VfioClassFile(name, "dev")));
  }
  // A group has one of the two.
  if (nodes[0].number)
    nodes.pop_back();
  else if (nodes[1].number)
    nodes.erase(nodes.begin());
  for (const PciDevice& device : facts.devices) {
    if (device.group != group || !device.vfio_cdev) continue;
    nodes.push_back(NodeOf(tree, "vfio/devices/" + *device.vfio_cdev,
                           DeviceDir(device.address) + "/vfio-dev/" + *device.vfio_cdev + "/dev"));
  }
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (mdev.group != group || !mdev.cdev) continue;
    nodes.push_back(NodeOf(tree, "vfio/devices/" + *mdev.cdev,
                           MdevDir(mdev.uuid) + "/vfio-dev/" + *mdev.cdev + "/dev"));
  }
  return nodes;
}

std::string Spell(const Holder& holder) {
  if (holder.pid == 0) return holder.command;
  if (holder.pod.empty()) return absl::StrFormat("pid %d (%s)", holder.pid, holder.command);
  return absl::StrFormat("pid %d (%s, %s)", holder.pid, holder.command, holder.pod);
}

std::optional<bool> IsGroupOpen(const Tree& tree, int group) {
  for (const std::string& node :
       {GroupNode(group), absl::StrFormat("%s/noiommu-%d", kVfioNodesDir, group)}) {
    const absl::Status opened = tree.OpenAt(node, O_RDWR).status();
    if (opened.ok()) return false;
    const int error = ErrnoOf(opened);
    if (error == EBUSY) return true;
    // No such node, or one whose group has gone.
    if (error != ENOENT && error != ENXIO && error != ENODEV) return std::nullopt;
  }
  std::vector<DeviceNode> nodes;
  for (const std::string& cdev : GroupCdevs(tree, group)) nodes.push_back({.name = "vfio/" + cdev});
  if (nodes.empty()) return false;
  const NodeHolders holders = FindHolders(tree, nodes);
  const auto held = [](const std::vector<Holder>& list) { return !list.empty(); };
  if (std::ranges::any_of(holders.by_node, held)) return true;
  return holders.complete ? std::optional(false) : std::nullopt;
}

}  // namespace vfio_agent
