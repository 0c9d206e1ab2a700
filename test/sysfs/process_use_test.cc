#include "sysfs/use/process_use.h"

#include <sys/sysmacros.h>

#include <catch2/catch.hpp>

#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

constexpr char kInformation[] =
    "Model: \t\t NVIDIA H100\nIRQ:   \t\t 16\nGPU UUID: \t GPU-x\nDevice Minor: \t 0\n";

struct Card : UseTree {
  Card() {
    Write(std::string("proc/driver/nvidia/gpus/") + kCard + "/information", kInformation);
    Below(kCard, "drm/card1/dev", "226:1").Below(kCard, "drm/card1/uevent", "DEVNAME=dri/card1");
  }
};

TEST_CASE("a process with a GPU's node open is a use with the exact remedy", "[sysfs]") {
  Card card;
  card.Process(37526, "nvidia-persiste", {"/run/nvidia/driver/dev/nvidia0"});
  card.Process(9, "python3", {"/dev/nvidia1", "/dev/nvidiactl"});
  CHECK(card.Uses(kCard) ==
        "process: is held open by pid 37526 (nvidia-persiste): /run/nvidia/driver/dev/nvidia0");
  CHECK(card.Remedy(kCard) ==
        "systemctl stop nvidia-persistenced (or nvidia-smi -i 0000:65:00.0 -pm 0)");
}

TEST_CASE("a process is one use with all the nodes that it has open", "[sysfs]") {
  Card card;
  card.Process(7, "python3", {"/dev/nvidia0", "/dev/dri/card1", "/dev/nvidia0"});
  CHECK(card.Uses(kCard) ==
        "process: is held open by pid 7 (python3): /dev/dri/card1, /dev/nvidia0");
  CHECK(card.Remedy(kCard).empty());
}

TEST_CASE("the pod of a holder is in the text", "[sysfs]") {
  Card card;
  card.Process(7, "dcgm-exporter", {"/dev/nvidia0"});
  card.Cgroup(7, "0::/kubepods/pod1b2c3d4e-0000-4000-8000-0123456789ab/x\n");
  CHECK(card.Uses(kCard) ==
        "process: is held open by pid 7 (dcgm-exporter, pod "
        "1b2c3d4e-0000-4000-8000-0123456789ab): /dev/nvidia0");
}

TEST_CASE("known holders have their remedy", "[sysfs]") {
  const auto [command, remedy] = GENERATE(table<std::string, std::string>({
      {"nv-fabricmanage", "nvidia-fabricmanager"},
      {"nv-hostengine", "nvidia-dcgm"},
      {"dcgm-exporter", "dcgm-exporter pod"},
      {"nvidia-device-p", "device plugin"},
      {"nvidia-smi", "nvidia-smi"},
      {"Xorg", "display manager"},
      {"gnome-shell", "display manager"},
      {"qemu-system-x86", "shut the VM down"},
      {"qemu-kvm", "shut the VM down"},
      {"cloud-hyperviso", "shut the VM down"},
      {"wireplumber", "sound"},
  }));
  CAPTURE(command);
  Card card;
  card.Process(7, command, {"/dev/nvidia0"});
  CHECK(card.Remedy(kCard).find(remedy) != std::string::npos);
}

TEST_CASE("a card on a login seat is a display", "[sysfs]") {
  Card card;
  card.Process(7, "systemd-logind", {"/dev/dri/card1"});
  CHECK(card.Uses(kCard) == "display: is held open by pid 7 (systemd-logind): /dev/dri/card1");
  Card other;
  other.Process(7, "systemd-logind", {"/dev/nvidia0"});
  CHECK(other.Uses(kCard).starts_with("process: "));
}

TEST_CASE("nodes of every kind of driver count", "[sysfs]") {
  const auto [path, node] = GENERATE(table<std::string, std::string>({
      {"sound/card0/pcmC0D3p", "snd/pcmC0D3p"},
      {"infiniband_verbs/uverbs0", "infiniband/uverbs0"},
      {"rebellions/rbln0", "rbln0"},
      {"uio/uio0", "uio0"},
      {"virtio2/block/vda/vda1", "vda1"},
  }));
  CAPTURE(path);
  UseTree tree;
  tree.Below(kCard, path + "/dev", "240:5").Below(kCard, path + "/uevent", "DEVNAME=" + node);
  tree.Process(7, "a", {"/dev/" + node});
  CHECK(tree.Uses(kCard) == "process: is held open by pid 7 (a): /dev/" + node);
}

TEST_CASE("block and character devices of one number are told apart", "[sysfs]") {
  UseTree tree;
  tree.Below(kDisk, "nvme/nvme0/dev", "240:0").Below(kDisk, "nvme/nvme0/nvme0n1/dev", "259:0");
  tree.Below(kDisk, "nvme/nvme0/nvme0n1/size", "1");
  const PciAddress address = *PciAddress::Parse(kDisk);
  const auto nodes = FindDeviceNodes(tree.Open(), address, WalkBelow(tree.Open(), address));
  CHECK(nodes ==
        std::vector<DeviceNode>{{.name = "nvme0", .number = ::makedev(240, 0)},
                                {.name = "nvme0n1", .block = true, .number = ::makedev(259, 0)}});
}

TEST_CASE("of very many processes some are shown and all are counted", "[sysfs]") {
  std::vector<Holder> holders;
  for (int pid = 1; pid <= 40; ++pid) holders.push_back({.pid = pid, .command = "a", .node = "n"});
  const auto uses = ProcessUses(*PciAddress::Parse(kCard), {holders});
  CHECK(uses.size() == 16);
  CHECK(uses.back().text == "is held open by pid 16 (a): n, and by 24 more processes");
  holders.resize(16);
  CHECK(ProcessUses(*PciAddress::Parse(kCard), {holders}).back().text ==
        "is held open by pid 16 (a): n");
}

TEST_CASE("the minor number of an NVIDIA node is read or not known", "[sysfs]") {
  CHECK(ParseNvidiaMinor(kInformation) == 0);
  CHECK(ParseNvidiaMinor("Device Minor: \t 253") == 253);
  for (const char* bad :
       {"", "Device Minor:", "Device Minor: \t x", "Device Minor: 1 2", "Device Minor: 254",
        "Device Minor: 99999999999999999999", "XDevice Minor: 1"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseNvidiaMinor(bad));
  }
}

}  // namespace
}  // namespace vfio_agent
