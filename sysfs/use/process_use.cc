#include "sysfs/use/process_use.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr unsigned kNvidiaMajor = 195;  // Documentation/admin-guide/devices.txt
constexpr int kNvidiaControl = 254;     // the first minor that is no GPU
constexpr size_t kMaxShown = 16;
constexpr std::string_view kAddress = "ADDRESS";

struct KnownHolder {
  std::string_view command;  // the kernel keeps 15 characters: a prefix
  std::string_view remedy;   // kAddress stands for the function's
};

constexpr std::string_view kStopDisplay =
    "stop the display manager (systemctl isolate multi-user.target) or give it another card";
constexpr std::string_view kStopVm = "shut the VM down";
constexpr std::string_view kStopSound = "stop the session that plays sound";
constexpr std::array kKnownHolders = std::to_array<KnownHolder>({
    {"nvidia-persiste", "systemctl stop nvidia-persistenced (or nvidia-smi -i ADDRESS -pm 0)"},
    {"nv-fabricmanage", "systemctl stop nvidia-fabricmanager, once no other GPU needs NVLink"},
    {"nv-hostengine", "stop the DCGM host engine: systemctl stop nvidia-dcgm, or delete its pod"},
    {"dcgm-exporter", "delete the dcgm-exporter pod, or keep it off this node by a label"},
    {"nvidia-device-p", "keep NVIDIA's container device plugin off this node by a label"},
    {"nvidia-smi", "wait until nvidia-smi has ended, or end it"},
    {"systemd-logind", "take the card off the seat: it is a display of this machine"},
    {"Xorg", kStopDisplay},
    {"Xwayland", kStopDisplay},
    {"gnome-shell", kStopDisplay},
    {"kwin_", kStopDisplay},
    {"weston", kStopDisplay},
    {"sway", kStopDisplay},
    {"qemu-", kStopVm},
    {"cloud-hyperviso", kStopVm},
    {"firecracker", kStopVm},
    {"pulseaudio", kStopSound},
    {"pipewire", kStopSound},
    {"wireplumber", kStopSound},
    {"gpuagent", "delete the pod of AMD's metrics exporter, or keep it off this node by a label"},
    {"k8s-device-plug", "keep AMD's container device plugin off this node by a label"},
    {"amd-smi", "wait until amd-smi has ended, or end it"},
    {"rocm-smi", "wait until rocm-smi has ended, or end it"},
    {"xpumd", "stop Intel's XPU manager: systemctl stop xpum, or delete its pod"},
    {"intel_gpu_top", "end intel_gpu_top"},
    {"hl-smi", "wait until hl-smi has ended, or end it"},
    {"rbln-", "stop Rebellions' daemon or tool, or keep its pod off this node by a label"},
    {"multipathd", "blacklist the drive in /etc/multipath.conf: systemctl reload multipathd"},
    {"opensm", "stop opensm, once another subnet manager serves the fabric"},
    {"ibacm", "systemctl stop ibacm.socket ibacm.service"},
});

const KnownHolder* FindKnown(std::string_view command) {
  const auto known = std::ranges::find_if(
      kKnownHolders, [command](const KnownHolder& k) { return command.starts_with(k.command); });
  return known == kKnownHolders.end() ? nullptr : &*known;
}

std::string RemedyFor(const Holder& holder, const PciAddress& address) {
  const KnownHolder* const known = FindKnown(holder.command);
  if (known == nullptr) return "";
  std::string remedy(known->remedy);
  if (const size_t at = remedy.find(kAddress); at != std::string::npos) {
    remedy.replace(at, kAddress.size(), address.ToString());
  }
  return remedy;
}

// systemd-logind has the card open because it belongs to a seat, for whoever sits there.
UseKind KindOf(const Holder& holder) {
  const bool card = holder.node.find("/dri/") != std::string::npos;
  return card && holder.command == "systemd-logind" ? UseKind::kDisplay : UseKind::kProcess;
}

// On the host the number is enough. In a copied tree there may be no nodes, and the name decides.
std::string NodeName(const Tree& tree, const std::string& dir) {
  constexpr std::string_view kKey = "DEVNAME=";
  const absl::StatusOr<std::string> uevent =
      tree.is_host() ? absl::NotFoundError("not needed") : tree.ReadText(dir + "/uevent");
  if (!uevent.ok()) return std::string(NameOf(dir));
  for (const std::string_view line : Lines(*uevent)) {
    if (line.starts_with(kKey)) return std::string(line.substr(kKey.size()));
  }
  return std::string(NameOf(dir));
}

}  // namespace

std::string_view KnownHolderStart(std::string_view command) {
  const KnownHolder* const known = FindKnown(command);
  return known == nullptr ? std::string_view() : known->command;
}

std::vector<DeviceNode> FindDeviceNodes(const Tree& tree, const PciAddress& address,
                                        const Below& below) {
  std::vector<DeviceNode> nodes;
  for (const std::string& dir : below.nodes) {
    const absl::StatusOr<std::string> number = tree.ReadText(dir + "/dev");
    if (!number.ok()) continue;
    nodes.push_back({.name = NodeName(tree, dir),
                     .block = std::ranges::count(below.disks, dir) != 0,
                     .number = ParseDeviceNumber(*number)});
  }
  const absl::StatusOr<std::string> nvidia = ReadProcText(tree, NvidiaInformation(address));
  const std::optional<int> minor = nvidia.ok() ? ParseNvidiaMinor(*nvidia) : std::nullopt;
  if (minor) {
    nodes.push_back({.name = absl::StrFormat("nvidia%d", *minor),
                     .number = ::makedev(kNvidiaMajor, static_cast<unsigned>(*minor))});
  }
  return nodes;
}

// "Device Minor: \t 0"
std::optional<int> ParseNvidiaMinor(std::string_view information) {
  constexpr std::string_view kKey = "Device Minor:";
  for (const std::string_view line : Lines(information)) {
    if (!line.starts_with(kKey)) continue;
    const std::vector<std::string_view> field = Fields(line.substr(kKey.size()));
    const auto minor = field.size() == 1 ? ParseNumber(field[0], 10) : std::nullopt;
    if (minor && *minor < kNvidiaControl) return static_cast<int>(*minor);
  }
  return std::nullopt;
}

std::vector<Use> ProcessUses(const PciAddress& address,
                             const std::vector<std::vector<Holder>>& held) {
  std::map<int, std::pair<Holder, std::vector<std::string>>> processes;
  for (const std::vector<Holder>& holders : held) {
    for (const Holder& holder : holders) {
      const auto entry =
          processes.try_emplace(holder.pid, holder, std::vector<std::string>()).first;
      entry->second.second.push_back(holder.node);
    }
  }
  std::vector<Use> uses;
  for (const auto& [pid, process] : processes) {
    const auto& [holder, names] = process;
    if (uses.size() == kMaxShown) {
      uses.back().text +=
          absl::StrFormat(", and by %d more processes", processes.size() - kMaxShown);
      return uses;
    }
    uses.push_back({.kind = KindOf(holder),
                    .text = absl::StrFormat("is held open by %s: %s", Spell(holder),
                                            absl::StrJoin(names, ", ")),
                    .remedy = RemedyFor(holder, address)});
  }
  return uses;
}

}  // namespace vfio_agent
