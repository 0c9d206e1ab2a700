// The Kernel's files that belong to the node and not to one device.
#include <sys/sysmacros.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

// Every boot of every machine; `files` of a scenario says otherwise.
constexpr char kBootId[] = "7d1c4a52-0000-4000-8000-000000000001";

}  // namespace

void Kernel::ShowNode() {
  for (const char* directory :
       {"sys/bus/pci/devices", "sys/bus/pci/drivers", "sys/module", "dev", "proc", "lib/modules"}) {
    vfs_.Directory(directory);
  }
  if (machine_.iommu != "unknown") {
    vfs_.Directory("sys/kernel/iommu_groups");
    vfs_.Directory("sys/class/iommu");
  }
  ShowBus();
  ShowIommu();
  ShowNuma();
  ShowProc();
  ShowModules();
}

void Kernel::ShowBus() {
  vfs_.File("sys/bus/pci/drivers_probe", 0200, nullptr,
            [this](std::string_view text, Call& call) { return StoreProbe(text, call); });
  vfs_.File("sys/bus/pci/rescan", 0200, nullptr,
            [this](std::string_view text, Call& call) { return StoreRescan(text, call); });
  vfs_.File("sys/bus/pci/drivers_autoprobe", 0644,
            Showing([this] { return std::string(drivers_autoprobe_ ? "1\n" : "0\n"); }),
            [this](std::string_view text, Call&) {
              drivers_autoprobe_ = !text.starts_with('0');
              return 0;
            });
}

// Where the IOMMU's own directory is; empty without one. Its "devices" are filled as devices join
// their groups.
std::string Kernel::IommuPath() const {
  const std::string above = "sys/devices/virtual/iommu/";
  if (machine_.iommu == "intel") return above + "dmar0";
  if (machine_.iommu == "amd") return above + "ivhd0";
  if (machine_.iommu == "arm-smmu") return above + "smmu3.0x0000000100000000";
  if (machine_.iommu == "virtio") return above + "iommu0";
  return "";
}

void Kernel::ShowIommu() {
  const std::string path = IommuPath();
  if (path.empty()) return;
  vfs_.Link("sys/class/iommu/" + path.substr(path.rfind('/') + 1), path);
  vfs_.Directory(path + "/devices");
  if (machine_.iommu == "intel") {
    vfs_.Text(path + "/intel-iommu/version", "1:0\n");
    vfs_.Text(path + "/intel-iommu/address", "fed90000\n");
    vfs_.Text(path + "/intel-iommu/cap", "d2008c222f0686\n");
    vfs_.Text(path + "/intel-iommu/ecap", "f00f4a\n");
  } else if (machine_.iommu == "amd") {
    vfs_.Text(path + "/amd-iommu/cap", "40d4\n");
    vfs_.Text(path + "/amd-iommu/features", "246577efa2054ada:0\n");
  }
}

void Kernel::ShowNuma() {
  std::string online;
  for (const auto& [number, node] : machine_.numa_nodes) {
    const std::string path = absl::StrFormat("sys/devices/system/node/node%d/", number);
    vfs_.Text(path + "cpulist", node.cpulist + "\n");
    vfs_.Text(path + "distance", node.distance + "\n");
    online += absl::StrFormat("%s%d", online.empty() ? "" : ",", number);
  }
  vfs_.Text("sys/devices/system/node/online", online + "\n");
}

void Kernel::ShowProc() {
  vfs_.Text("proc/cmdline", machine_.command_line + "\n");
  vfs_.Text("proc/sys/kernel/osrelease", machine_.release + "\n");
  vfs_.Text("proc/sys/kernel/random/boot_id", absl::StrFormat("%s\n", kBootId));
  vfs_.Text("proc/mounts",
            "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0\n"
            "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
            "udev /dev devtmpfs rw,nosuid,relatime,size=8000000k,mode=755 0 0\n"
            "/dev/vda1 / ext4 rw,relatime 0 0\n");
  if (machine_.virtual_machine) {
    vfs_.Text("proc/cpuinfo",
              "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vmx hypervisor\n");
  }
  vfs_.Text("proc/iomem", "00000000-00000fff : Reserved\n");
}

// A driver that is loaded but not installed cannot be: both come from the same list.
void Kernel::ShowModules() {
  const std::string path = "lib/modules/" + machine_.release + "/";
  std::string dependencies = "kernel/sound/pci/hda/snd-hda-intel.ko:\n";
  std::string builtin = "kernel/drivers/pci/pcie/pcieport.ko\n";
  std::string aliases;
  if (machine_.vfio_pci == "builtin") {
    builtin +=
        "kernel/drivers/vfio/vfio.ko\nkernel/drivers/vfio/vfio_iommu_type1.ko\n"
        "kernel/drivers/vfio/pci/vfio-pci.ko\n";
  } else if (machine_.vfio_pci != "missing") {
    dependencies +=
        "kernel/drivers/vfio/pci/vfio-pci.ko: kernel/drivers/vfio/pci/vfio-pci-core.ko "
        "kernel/drivers/vfio/vfio.ko\n"
        "kernel/drivers/vfio/pci/vfio-pci-core.ko: kernel/drivers/vfio/vfio.ko\n"
        "kernel/drivers/vfio/vfio.ko:\n"
        "kernel/drivers/vfio/vfio_iommu_type1.ko: kernel/drivers/vfio/vfio.ko\n";
    aliases += "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n";
  }
  for (const std::string& line : machine_.module_aliases) aliases += line + "\n";
  vfs_.Text(path + "modules.dep", dependencies);
  vfs_.Text(path + "modules.builtin", builtin);
  vfs_.Text(path + "modules.alias", aliases);
  if (!machine_.noiommu.empty()) {
    vfs_.Text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", machine_.noiommu + "\n");
  }
}

// A process that has a group's node open holds the group's devices.
void Kernel::ShowProcess(const MachineProcess& process) {
  const std::string path = absl::StrFormat("proc/%d/", process.pid);
  processes_[process.pid] = process;
  vfs_.Text(path + "comm", process.comm + "\n");
  vfs_.Text(path + "cgroup", process.cgroup);
  vfs_.Text(path + "status",
            absl::StrFormat("Name:\t%s\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\n", process.comm,
                            process.pid, process.pid));
  constexpr int kFirst = 3;
  vfs_.Directory(path + "fd");
  for (size_t i = 0; i < process.fds.size(); ++i) {
    const std::string& target = process.fds[i];
    vfs_.RawLink(absl::StrFormat("%sfd/%d", path, kFirst + i), target);
    for (auto& [number, group] : groups_) {
      if (target == absl::StrFormat("/dev/vfio/%d", number) ||
          target == absl::StrFormat("/dev/vfio/noiommu-%d", number)) {
        group.holders.insert(process.pid);
      }
    }
  }
}

int Kernel::Hold(int group, int pid, const std::string& comm) {
  if (!groups_.contains(group)) return ENOENT;
  MachineProcess process{.pid = pid, .comm = comm};
  if (const auto known = processes_.find(pid); known != processes_.end()) process = known->second;
  process.fds.push_back(absl::StrFormat("/dev/vfio/%d", group));
  ShowProcess(process);
  return 0;
}

// The group's holders end, with everything else that they had open.
int Kernel::Free(int number) {
  if (!groups_.contains(number)) return ENOENT;
  for (const int pid : std::set(groups_[number].holders)) {
    for (auto& entry : groups_) entry.second.holders.erase(pid);
    processes_.erase(pid);
    vfs_.Remove(absl::StrFormat("proc/%d", pid));
  }
  return 0;
}

void Kernel::ShowExtras() {
  for (const auto& [path, text] : machine_.files) {
    auto kept = std::make_shared<std::string>(text);
    vfs_.File(path, 0644, Showing([kept] { return *kept; }),
              [kept](std::string_view written, Call&) {
                *kept = std::string(written);
                return 0;
              });
  }
  for (const auto& [path, target] : machine_.links) vfs_.RawLink(path, target);
  for (const std::string& path : machine_.absent) vfs_.Remove(path);
}

}  // namespace vfio_agent::sim
