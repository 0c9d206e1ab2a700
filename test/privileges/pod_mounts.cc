#include "test/privileges/pod_mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace vfio_agent {
namespace {

// As the runtimes have them by default (procMount: Default).
constexpr const char* kMasked[] = {"/proc/acpi", "/proc/kcore",      "/proc/keys",
                                   "/proc/scsi", "/proc/timer_list", "/sys/firmware"};

bool IsKernels(const std::string& path) {
  for (const std::string top : {"/sys", "/dev", "/proc", "/lib/modules"}) {
    if (path == top || path.starts_with(top + "/")) return true;
  }
  return false;
}

void Mount(const char* type, const std::string& target, unsigned long flags, const char* data) {
  if (::mount(type, target.c_str(), type, flags, data) != 0) {
    Die("mount " + std::string(type) + " on " + target);
  }
}

// A copy of what is mounted at `path`, which is attached to nothing yet.
int Clone(const std::string& path) {
  const int tree =
      ::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (tree < 0) Die("a mount of " + path);
  return tree;
}

void SetReadOnly(int tree, const char* path, unsigned flags) {
  mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
  if (::mount_setattr(tree, path, flags | AT_RECURSIVE, &read_only, sizeof read_only) != 0) {
    Die("make read-only");
  }
}

void Attach(int tree, const std::string& target) {
  if (::move_mount(tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    Die("mount on " + target);
  }
  ::close(tree);
}

void MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    errno = error.value();
    Die("create " + path);
  }
}

// What a runtime puts there, and directories to mount on.
void MakeDev(const PodSpec& spec, const PodPlace& place) {
  const std::string dev = place.node + "/dev";
  Mount("tmpfs", dev, MS_NOSUID, "mode=755");
  const std::pair<const char*, unsigned> nodes[] = {
      {"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9}};
  for (const auto& [name, minor] : nodes) {
    if (::mknod((dev + "/" + name).c_str(), S_IFCHR | 0666, ::makedev(1, minor)) != 0) Die(name);
  }
  for (const PodMount& mount : spec.mounts) {
    if (mount.path.starts_with("/dev/")) MakeDirectories(place.node + mount.path);
  }
}

void MakeSys(const PodPlace& place) {
  if (place.node.empty()) {
    Mount("sysfs", "/sys", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  } else {
    Attach(Clone(place.node + "/sys"), place.node + "/sys");
  }
}

void Mask() {
  for (const char* const path : kMasked) {
    struct stat info = {};
    if (::stat(path, &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      Mount("tmpfs", path, MS_RDONLY, nullptr);
    } else if (::mount("/dev/null", path, nullptr, MS_BIND, nullptr) != 0) {
      Die(path);
    }
  }
}

}  // namespace

void Die(const std::string& what) {
  std::fprintf(stderr, "pod-run: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(125);
}

std::string PlaceOf(const std::string& path, const PodPlace& place) {
  if (const auto at = place.at.find(path); at != place.at.end()) return at->second;
  return IsKernels(path) ? place.node + path : path;
}

void MakePodMounts(const PodSpec& spec, const PodPlace& place) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) Die("private mounts");
  std::vector<std::pair<int, std::string>> volumes;
  for (const PodMount& mount : spec.mounts) {
    if (mount.host.empty()) continue;
    const std::string source = PlaceOf(mount.host, place);
    if (mount.create) MakeDirectories(source);
    volumes.emplace_back(Clone(source), PlaceOf(mount.path, place));
    if (mount.read_only) SetReadOnly(volumes.back().first, "", AT_EMPTY_PATH);
  }
  // What is not mounted from the host is not there.
  for (const auto& entry : place.at) Mount("tmpfs", entry.second, 0, nullptr);
  if (std::filesystem::exists(place.node + "/lib/modules")) {
    Mount("tmpfs", place.node + "/lib/modules", 0, nullptr);
  }
  MakeSys(place);
  MakeDev(spec, place);
  Mount("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  Mask();
  if (spec.read_only_root) SetReadOnly(AT_FDCWD, "/", 0);
  for (const auto& [tree, target] : volumes) Attach(tree, target);
}

}  // namespace vfio_agent
