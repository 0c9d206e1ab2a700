#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "agent/snapshot/mask_text.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kPools = "proc/spl/kstat/zfs/";

// Directories that every node has or the kubelet makes, and kinds of devices below /dev. Patterns
// of fnmatch(3).
constexpr std::array kKnown = std::to_array<const char*>(
    {// files and directories
     "bin", "boot", "dev", "efi", "EFI", "etc", "home", "lib", "lib64", "media", "mnt", "opt",
     "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var", "local", "share", "log",
     "cache", "spool", "swap", "swapfile", "swap.img", "lock", "user", "shm", "mqueue", "pts",
     "ptmx", "hugepages", "hugepages-*", "kernel", "security", "debug", "tracing", "config", "fs",
     "fuse", "connections", "bpf", "cgroup", "cgroup2", "pstore", "firmware", "efivars",
     "binfmt_misc", "bus", "block", "class", "module", "rpc_pipefs", "initramfs", "systemd",
     "credentials", "netns", "snap", "udev", "data", "@", "@home", "@rootfs", "@snapshots", "..",
     // pods and their volumes
     "kubelet", "pods", "volumes", "volumeDevices", "volume-subpaths", "plugins", "kubernetes.io*",
     "csi", "mount", "globalmount", "publish", "containers", "containerd", "io.containerd*",
     "k8s.io", "crio", "docker", "overlay", "overlay2", "overlay-containers", "rootfs", "merged",
     "sandboxes", "kubevirt*", "nvidia", "driver", "vfio-agent", "rancher", "k3s", "storage",
     // what a volume or file system comes from
     "none", "devtmpfs", "tmpfs", "sysfs", "cgroup", "debugfs", "tracefs", "securityfs", "configfs",
     "fusectl", "hugetlbfs", "systemd-1", "udev", "sunrpc", "nsfs", "ramfs",
     // nodes
     "[0-9]", "[0-9][0-9]", "[0-9][0-9][0-9]", "[0-9][0-9][0-9][0-9]", "nvidia[0-9]*", "nvidiactl",
     "nvidia-*", "vfio", "vfio[0-9]*", "noiommu-[0-9]*", "devices", "iommu", "dri", "card[0-9]*",
     "renderD[0-9]*", "by-path", "kfd", "fb[0-9]*", "infiniband", "uverbs[0-9]*", "umad[0-9]*",
     "issm[0-9]*", "rdma_cm", "snd", "controlC*", "pcmC*", "hwC*", "seq", "timer", "nvme[0-9]*",
     "ng[0-9]*", "sd[a-z]", "sd[a-z][a-z]", "sd[a-z][0-9]*", "sd[a-z][a-z][0-9]*", "vd[a-z]",
     "vd[a-z][0-9]*", "xvd[a-z]", "xvd[a-z][0-9]*", "hd[a-z]", "sr[0-9]*", "sg[0-9]*", "st[0-9]*",
     "loop[0-9]*", "md[0-9]*", "dm-[0-9]*", "mapper", "zd[0-9]*", "zram[0-9]*", "nbd[0-9]*",
     "rbd[0-9]*", "bcache[0-9]*", "pmem[0-9]*", "bsg", "mem", "null", "zero", "full", "random",
     "urandom", "console", "tty", "tty[0-9]*", "ttyS[0-9]*", "kvm", "vhost-*", "net", "tun",
     "ptp[0-9]*", "hidraw[0-9]*", "input", "event[0-9]*", "mouse[0-9]*", "usb", "video*"});

bool IsKnown(const std::string& part) {
  return part.empty() || std::ranges::any_of(kKnown, [&part](const char* pattern) {
           return ::fnmatch(pattern, part.c_str(), 0) == 0;
         });
}

// Names that udev gives by a hardware address: "enx0c42a1030065".
constexpr std::array<std::string_view, 5> kByAddress = {"enx", "wlx", "ibx", "rocex", "iwx"};

std::string MaskPart(const std::string& part, Masker& masker) {
  for (const std::string_view prefix : kByAddress) {
    const std::string_view rest =
        std::string_view(part).substr(std::min(part.size(), prefix.size()));
    const bool digits = std::ranges::all_of(
        rest, [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
    if (part.starts_with(prefix) && digits && (rest.size() == 12 || rest.size() == 16)) {
      return std::string(prefix) + masker.Hex(rest);
    }
  }
  return masker.Ids(part);
}

bool IsUuid(const std::string& name) {
  if (name.size() != 36) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool digit = absl::ascii_isxdigit(static_cast<unsigned char>(name[i]));
    if (dash ? name[i] != '-' : !digit) return false;
  }
  return true;
}

}  // namespace

std::string MaskName(std::string_view text, Masker& masker) {
  const bool line = text.ends_with('\n');
  const std::string name(line ? text.substr(0, text.size() - 1) : text);
  const std::string end = line ? "\n" : "";
  if (IsKnown(name)) return name + end;
  // What pods' directories are called.
  return (IsUuid(name) ? masker.Hex(name) : masker.Word(name)) + end;
}

std::string MaskPath(std::string_view path, Masker& masker) {
  std::string masked;
  for (const auto& view : absl::StrSplit(std::string(path), '/')) {
    masked += "/" + MaskName(std::string(view), masker);
  }
  return masked.substr(1);
}

std::string MaskOpenFile(std::string_view target, Masker& masker) {
  const bool deleted = target.ends_with(kDeleted);
  if (deleted) target.remove_suffix(kDeleted.size());
  return MaskPath(target, masker) + (deleted ? std::string(kDeleted) : "");
}

std::string MaskPlace(std::string_view path, Masker& masker) {
  // Statistics of ZFS itself are beside its pools, and no less masked.
  const std::string_view prefix = path.starts_with(kPools) ? kPools : std::string_view();
  path.remove_prefix(prefix.size());
  std::string masked;
  for (const auto& view : absl::StrSplit(std::string(path), '/')) {
    const std::string part(view);
    const bool pool = !prefix.empty() && masked.empty();
    masked += "/" + (pool ? masker.Word(part) : MaskPart(part, masker));
  }
  return std::string(prefix) + masked.substr(1);
}

}  // namespace vfio_agent
