#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "agent/doctor/looked_for.h"
#include "agent/snapshot/mask_text.h"
#include "sysfs/use/process_use.h"

namespace vfio_agent {
namespace {

// What programs are called that anybody has. Patterns of fnmatch(3), of 15 characters at most.
constexpr std::array kPrograms = std::to_array<const char*>({"systemd",
                                                             "systemd-udevd",
                                                             "systemd-journal",
                                                             "systemd-logind",
                                                             "(sd-pam)",
                                                             "init",
                                                             "bash",
                                                             "sh",
                                                             "sudo",
                                                             "sshd",
                                                             "python",
                                                             "python3",
                                                             "python3.[0-9]",
                                                             "python3.[0-9][0-9]",
                                                             "java",
                                                             "node",
                                                             "perl",
                                                             "ruby",
                                                             "dd",
                                                             "fio",
                                                             "mount",
                                                             "multipathd",
                                                             "lvm",
                                                             "dmeventd",
                                                             "mdadm",
                                                             "smartd",
                                                             "nvme",
                                                             "iscsid",
                                                             "zpool",
                                                             "NetworkManager",
                                                             "dhclient",
                                                             "wpa_supplicant",
                                                             "ptp4l",
                                                             "phc2sys",
                                                             "lldpd",
                                                             "rasdaemon",
                                                             "containerd-shim",
                                                             "conmon",
                                                             "runc",
                                                             "crun",
                                                             "dockerd",
                                                             "cri-dockerd",
                                                             "virt-launcher",
                                                             "virt-launcher-m",
                                                             "vfio-agent",
                                                             "qemu-system-x86",
                                                             "qemu-system-aar",
                                                             "qemu-kvm",
                                                             "kwin_x11",
                                                             "kwin_wayland",
                                                             "Xorg.bin",
                                                             "gdm",
                                                             "sddm",
                                                             "lightdm",
                                                             "nvidia-cuda-mps",
                                                             "nvidia-modprobe",
                                                             "nvtop",
                                                             "rocm-smi",
                                                             "dpdk-testpmd",
                                                             "testpmd",
                                                             "vpp_main",
                                                             "ovs-vswitchd",
                                                             "ollama",
                                                             "tritonserver",
                                                             "ffmpeg"});

// QEMU as libvirt starts it with debug-threads: "qemu:GUEST".
constexpr std::string_view kGuest = "qemu:";

// As much of it as another place of this program goes by.
std::string_view KnownStart(std::string_view command) {
  std::string_view start = KnownHolderStart(command);
  if (command.starts_with(kGuest)) start = kGuest;
  for (const std::string_view known : DoctorCommands()) {
    if (command.starts_with(known) && known.size() > start.size()) start = known;
  }
  return start;
}

}  // namespace

std::string MaskProgram(std::string_view comm, Masker& masker) {
  const bool line = comm.ends_with('\n');
  const std::string command(line ? comm.substr(0, comm.size() - 1) : comm);
  const bool known = std::ranges::any_of(kPrograms, [&command](const char* pattern) {
    return ::fnmatch(pattern, command.c_str(), 0) == 0;
  });
  const std::string_view start = known ? command : KnownStart(command);
  const std::string_view rest = std::string_view(command).substr(start.size());
  return std::string(start) + (rest.empty() ? "" : masker.Word(rest)) + (line ? "\n" : "");
}

}  // namespace vfio_agent
