#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "agent/snapshot/mask_text.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

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
     // the kubelet's and the runtime's files, and rules of modprobe.d
     "kubernetes", "config.yaml", "config.json", "kubelet-config.yaml", "kubelet-config.json",
     "kubelet.conf", "kubelet.service", "kubelet.service.d", "10-kubeadm.conf",
     "multi-user.target.wants", "system", "default", "sysconfig", "kubeadm-flags.env",
     "device-plugins", "kubelet.sock", "kubelet_internal_checkpoint", "pod-resources",
     "cpu_manager_state", "memory_manager_state", "containerd.sock", "crio.sock",
     "cri-dockerd.sock", "modprobe.d", "blacklist.conf", "nouveau.conf", "nvidia.conf", "vfio.conf",
     "vfio-pci.conf",
     // what a volume or file system comes from
     "none", "devtmpfs", "tmpfs", "sysfs", "cgroup", "debugfs", "tracefs", "securityfs", "configfs",
     "fusectl", "hugetlbfs", "systemd-1", "udev", "sunrpc", "nsfs", "ramfs",
     // nodes
     "[0-9]", "[0-9][0-9]", "[0-9][0-9][0-9]", "[0-9][0-9][0-9][0-9]", "nvidia[0-9]*", "nvidiactl",
     "nvidia-*", "vfio", "vfio[0-9]*", "noiommu-[0-9]*", "devices", "iommu", "egm[0-9]*", "dri",
     "card[0-9]*", "renderD[0-9]*", "by-path", "kfd", "fb[0-9]*", "infiniband", "uverbs[0-9]*",
     "umad[0-9]*", "issm[0-9]*", "rdma_cm", "snd", "controlC*", "pcmC*", "hwC*", "seq", "timer",
     "nvme[0-9]*", "ng[0-9]*", "sd[a-z]", "sd[a-z][a-z]", "sd[a-z][0-9]*", "sd[a-z][a-z][0-9]*",
     "vd[a-z]", "vd[a-z][0-9]*", "xvd[a-z]", "xvd[a-z][0-9]*", "hd[a-z]", "sr[0-9]*", "sg[0-9]*",
     "st[0-9]*", "loop[0-9]*", "md[0-9]*", "dm-[0-9]*", "mapper", "zd[0-9]*", "zram[0-9]*",
     "nbd[0-9]*", "rbd[0-9]*", "bcache[0-9]*", "pmem[0-9]*", "bsg", "mem", "null", "zero", "full",
     "random", "urandom", "console", "tty", "tty[0-9]*", "ttyS[0-9]*", "kvm", "vhost-*", "net",
     "tun", "ptp[0-9]*", "hidraw[0-9]*", "input", "event[0-9]*", "mouse[0-9]*", "usb", "video*"});

bool IsKnown(const std::string& part) {
  return part.empty() || std::ranges::any_of(kKnown, [&part](const char* pattern) {
           return ::fnmatch(pattern, part.c_str(), 0) == 0;
         });
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

// By these the program finds a file in its directory.
constexpr std::array<std::string_view, 7> kEndings = {".conf", ".yaml", ".yml",    ".json",
                                                      ".sock", ".env",  ".service"};

// "20-" of "20-acme.conf": in which order files are read.
size_t OrderOf(std::string_view name) {
  const bool order = name.ends_with(".conf") && name.size() > 3 && name[2] == '-' &&
                     absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
                     absl::ascii_isdigit(static_cast<unsigned char>(name[1]));
  return order ? 3 : 0;
}

std::string MaskUnknown(std::string_view name, Masker& masker) {
  const auto known = std::ranges::find_if(
      kEndings, [name](std::string_view ending) { return name.ends_with(ending); });
  const size_t end = known == kEndings.end() ? name.size() : name.size() - known->size();
  const size_t start = OrderOf(name);
  const std::string stem(name.substr(start, end - start));
  // What pods' directories are called.
  const std::string masked = IsUuid(stem) ? masker.Hex(stem) : masker.Word(stem);
  return std::string(name.substr(0, start)) + masked + std::string(name.substr(end));
}

}  // namespace

std::string MaskName(std::string_view text, Masker& masker) {
  const bool line = text.ends_with('\n');
  const std::string name(line ? text.substr(0, text.size() - 1) : text);
  const std::string end = line ? "\n" : "";
  return (IsKnown(name) ? name : MaskUnknown(name, masker)) + end;
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

}  // namespace vfio_agent
