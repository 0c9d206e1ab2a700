// What a snapshot keeps of each text. One row of the table, one test.
#include "agent/snapshot/masks.h"

#include <catch2/catch.hpp>
#include <set>

#include "agent/snapshot/mask_text.h"
#include "agent/work/journal.h"
#include "sysfs/cgroup_owner.h"
#include "sysfs/display_use.h"
#include "sysfs/network_use.h"
#include "sysfs/process_use.h"
#include "sysfs/storage_use.h"

namespace vfio_agent {
namespace {

constexpr char kNet[] = "sys/devices/pci0000:00/0000:00:01.0/net/eth0/";
constexpr char kRdma[] = "sys/devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0/";

// By the table, as a snapshot does it; whatever is masked is masked to itself.
std::string Masked(const std::string& path, const std::string& text) {
  Masker first, second;
  std::string once = MaskFor(path).apply(text, first);
  CHECK(MaskFor(path).apply(once, second) == once);
  return once;
}

TEST_CASE("the same address gets the same mask, another one another", "[snapshot]") {
  Masker masker;
  const std::string a = masker.Hex("ec:0d:9a:11:22:33"), b = masker.Hex("ec:0d:9a:11:22:34");
  CHECK(a == "00:00:00:00:00:01");
  CHECK(b == "00:00:00:00:00:02");
  CHECK(masker.Hex("EC:0D:9A:11:22:33") == a);
  CHECK(masker.Hex("00:00:00:00:00:00") == "00:00:00:00:00:00");
  CHECK(masker.Hex("ff:ff:ff:ff:ff:ff") == "ff:ff:ff:ff:ff:ff");
  CHECK(masker.Word("pool") == masker.Word("pool"));
  CHECK(masker.Word("pool") != masker.Word("tank"));
}

TEST_CASE("hardware addresses keep their form and nothing else", "[snapshot]") {
  CHECK(Masked(std::string(kNet) + "address", "ec:0d:9a:11:22:33\n") == "00:00:00:00:00:01\n");
  CHECK(Masked(std::string(kNet) + "perm_hwaddr", "ec:0d:9a:11:22:33\n") == "00:00:00:00:00:01\n");
  CHECK(Masked(std::string(kNet) + "phys_switch_id", "ec0d9a1122\n") == "0000000001\n");
  CHECK(Masked(std::string(kRdma) + "node_guid", "0c42:a103:0065:1234\n") ==
        "0000:0000:0000:0001\n");
  CHECK(Masked(std::string(kRdma) + "sys_image_guid", "0c42:a103:0065:1234\n") ==
        "0000:0000:0000:0001\n");
  CHECK(
      Masked(std::string(kRdma) + "ports/1/gids/0", "fe80:0000:0000:0000:0e42:a1ff:fe65:1234\n") ==
      "0000:0000:0000:0000:0000:0000:0000:0001\n");
  CHECK(Masked(std::string(kRdma) + "node_desc", "gpu-node-17 HCA-1\n").empty());
}

TEST_CASE("serial numbers and what the firmware says of the machine are dropped", "[snapshot]") {
  for (const char* path :
       {"sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/serial",
        "sys/devices/pci0000:00/0000:01:00.0/serial_number",
        "sys/devices/pci0000:00/0000:01:00.0/unique_id",
        "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/wwid",
        "sys/devices/pci0000:00/0000:01:00.0/vpd", "sys/class/dmi/id/product_uuid",
        "sys/devices/virtual/dmi/id/board_serial", "sys/firmware/dmi/tables/DMI",
        "proc/4242/environ"}) {
    CAPTURE(path);
    CHECK(Masked(path, "S64HNE0R\n").empty());
  }
  CHECK(Masked("sys/devices/pci0000:00/0000:01:00.0/serial8250/tty/ttyS4/dev", "4:68\n") ==
        "4:68\n");
}

TEST_CASE("of a uevent a device node's number and name are kept", "[snapshot]") {
  CHECK(Masked("sys/devices/pci0000:00/x/block/sda/uevent",
               "MAJOR=8\nMINOR=0\nDEVNAME=sda\nDISKSEQ=9\nPARTNAME=customer\n") ==
        "MAJOR=8\nMINOR=0\nDEVNAME=sda\n");
}

TEST_CASE("a volume has the same other name everywhere", "[snapshot]") {
  Masker masker;
  const std::string name =
      MaskFor("sys/devices/virtual/block/dm-1/dm/name").apply("vg0-acme\n", masker);
  CHECK(name == "masked-0001\n");
  CHECK(MaskFor("sys/devices/virtual/block/dm-1/dm/uuid").apply("LVM-abc\n", masker) ==
        "masked-0002\n");
  const std::string mounts = MaskMounts(
      "36 35 253:1 / /srv/acme rw,noatime shared:1 - ext4 /dev/mapper/vg0-acme rw,data=ordered\n",
      masker);
  CHECK(mounts == "0 0 253:1 / /srv/masked-0003 rw - ext4 /dev/mapper/masked-0001 rw\n");
  CHECK(MaskSwaps("Filename\tType\n/dev/mapper/vg0-acme\tpartition\t1\t0\t-2\n", masker) ==
        "Filename\tType\n/dev/mapper/masked-0001\tpartition\t1\t0\t-2\n");
}

TEST_CASE("the kernel command line keeps what bears on devices, of the rest the names",
          "[snapshot]") {
  CHECK(Masked("proc/cmdline",
               "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1b2c3d4e-0000-1111-2222-333344445555 ro quiet "
               "intel_iommu=on iommu=pt pcie_acs_override=downstream vfio-pci.ids=10de:2330 "
               "hugepagesz=1G ip=10.1.2.3 systemd.hostname=node17 s3cret "
               "modprobe.blacklist=nouveau\n") ==
        "BOOT_IMAGE=masked-0001 root=masked-0002 ro quiet intel_iommu=on iommu=pt "
        "pcie_acs_override=downstream vfio-pci.ids=10de:2330 hugepagesz=1G ip=masked-0003 "
        "systemd.hostname=masked-0004 masked-0005 modprobe.blacklist=nouveau\n");
}

TEST_CASE("mounts keep their device, kind and what every node has of their place", "[snapshot]") {
  const std::string masked = Masked(
      "proc/1/mountinfo",
      "1 0 259:2 / / rw shared:1 - ext4 /dev/nvme0n1p2 rw\n"
      "2 1 259:3 /home/ada /home/ada rw - xfs /dev/nvme0n1p3 rw,secret=1\n"
      "3 1 0:50 / /var/lib/kubelet/pods/1b2c3d4e-0000-1111-2222-333344445555/volumes/"
      "kubernetes.io~csi/pvc-7/mount rw - nfs4 filer.example.com:/export rw,addr=10.0.0.1\n"
      "4 1 0:6 /nvme1n1 /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-8/x "
      "rw - devtmpfs udev rw\n"
      "no mount\n");
  CHECK(masked ==
        "0 0 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n"
        "0 0 259:3 /home/masked-0001 /home/masked-0001 rw - xfs /dev/nvme0n1p3 rw\n"
        "0 0 0:50 / /var/lib/kubelet/pods/00000000-0000-0000-0000-000000000001/volumes/"
        "kubernetes.io~csi/masked-0002/mount rw - nfs4 masked-0003/masked-0004 rw\n"
        "0 0 0:6 /nvme1n1 /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/"
        "masked-0005/masked-0006 rw - devtmpfs udev rw\n");
  const std::vector<Mount> mounts = ParseMounts(masked);
  REQUIRE(mounts.size() == 4);
  CHECK(mounts[1].source == "/dev/nvme0n1p3");
  CHECK(mounts[3].root == "/nvme1n1");
}

TEST_CASE("routes keep their interfaces and which is the default", "[snapshot]") {
  const std::string route =
      Masked("proc/1/net/route",
             "Iface\tDestination\tGateway\tFlags\n"
             "eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
             "eth0\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n");
  CHECK(route ==
        "Iface\tDestination\tGateway\tFlags\n"
        "eth0\t00000000\t00000001\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
        "eth0\t00000002\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n");
  const std::string route6 = Masked(
      "proc/1/net/ipv6_route",
      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
      "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n"
      "20010db8000000000000000000000000 40 00000000000000000000000000000000 00 "
      "00000000000000000000000000000000 00000100 00000001 00000000 00000001 enx0c42a1030065\n");
  CHECK_THAT(route6, !Catch::Contains("2001") && !Catch::Contains("fe80") &&
                         Catch::Contains("enx000000000001"));
  const std::string inet6 =
      Masked("proc/1/net/if_inet6", "20010db8000000000e42a1fffe030065 02 40 00 80 eth1\n");
  CHECK_THAT(inet6, !Catch::Contains("2001"));
  HostNetwork network;
  AddRoutes(route, network);
  AddRoutes6(route6, network);
  AddAddresses6(inet6, network);
  CHECK(network.defaults == std::set<std::string>{"eth0"});
  CHECK(network.addressed == std::set<std::string>{"eth0", "eth1"});
}

TEST_CASE("whose a process is stays visible: the kind, with another id", "[snapshot]") {
  struct Row {
    const char* cgroup;
    const char* masked;
    const char* owner;
  };
  const std::string id(64, 'c');
  const std::string other = std::string(63, '0') + "1";
  const auto row = GENERATE_COPY(values<std::array<std::string, 3>>({
      {"0::/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod1b2c3d4e_0000_1111_2222_333344445555.slice/cri-containerd-" +
           id + ".scope",
       "0::/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod00000000_0000_0000_0000_000000000001.slice/cri-containerd-" +
           other + ".scope",
       "pod 00000000-0000-0000-0000-000000000001, container 000000000000"},
      {"0::/kubepods/besteffort/pod1b2c3d4e-0000-1111-2222-333344445555/" + id,
       "0::/kubepods/besteffort/pod00000000-0000-0000-0000-000000000001/" + other,
       "pod 00000000-0000-0000-0000-000000000001, container 000000000000"},
      {"0::/machine.slice/machine-qemu\\x2d3\\x2dacme.scope/libvirt/emulator",
       "0::/machine.slice/masked-0001.scope/masked-0002/emulator", "masked-0001.scope"},
      {"0::/system.slice/nvidia-persistenced.service",
       "0::/system.slice/nvidia-persistenced.service", "nvidia-persistenced.service"},
      {"0::/system.slice/backup@acme.service", "0::/system.slice/masked-0001.service",
       "masked-0001.service"},
      {"0::/user.slice/user-1000.slice/session-3.scope",
       "0::/user.slice/user-1000.slice/session-3.scope", "session-3.scope"},
      {"0::/crio-7.scope", "0::/crio-masked-0001.scope", "crio-masked-0001.scope"},
      {"12:devices:/acme", "12:devices:/masked-0001", ""},
  }));
  const std::string masked = Masked("proc/4242/cgroup", row[0] + "\n");
  CHECK(masked == row[1] + "\n");
  CHECK(CgroupOwner(masked) == row[2]);
}

TEST_CASE("an open device keeps its name, a file's path does not", "[snapshot]") {
  CHECK(Masked("proc/4242/fd/7", "/dev/nvidia0") == "/dev/nvidia0");
  CHECK(Masked("proc/4242/fd/7", "/run/nvidia/driver/dev/nvidia0 (deleted)") ==
        "/run/nvidia/driver/dev/nvidia0 (deleted)");
  CHECK(Masked("proc/4242/fd/7", "/dev/vfio/devices/vfio3") == "/dev/vfio/devices/vfio3");
  CHECK(Masked("proc/4242/fd/7", "/home/ada/plan.txt") == "/home/masked-0001/masked-0002");
}

TEST_CASE("where the kernel is in memory is not told, the console's frame buffer is",
          "[snapshot]") {
  const std::string masked = Masked("proc/iomem",
                                    "01000000-01ffffff : Kernel code\n"
                                    "e0000000-e0ffffff : PCI Bus 0000:b3\n"
                                    "  e0000000-e02fffff : efifb\n");
  CHECK_THAT(masked, !Catch::Contains("Kernel"));
  CHECK(ParseIomem(masked).size() == 1);
}

TEST_CASE("of an NVIDIA card the UUID is dropped, the minor number kept", "[snapshot]") {
  const std::string masked =
      Masked("proc/driver/nvidia/gpus/0000:01:00.0/information",
             "Model: \t\t NVIDIA H100\nIRQ: 16\nGPU UUID: \t "
             "GPU-1b2c3d4e-0000-1111-2222-333344445555\nDevice Minor: \t 3\n");
  CHECK(masked == "Model: \t\t NVIDIA H100\nDevice Minor: \t 3\n");
  CHECK(ParseNvidiaMinor(masked) == 3);
}

TEST_CASE("host names, machine and boot ids are others", "[snapshot]") {
  CHECK(Masked("proc/sys/kernel/hostname", "gpu-17\n") == "masked-0001\n");
  CHECK(Masked("proc/sys/kernel/domainname", "example.com\n") == "masked-0001\n");
  CHECK(Masked("etc/hostname", "gpu-17\n") == "masked-0001\n");
  CHECK(Masked("etc/machine-id", std::string(31, 'a') + "b\n") == std::string(31, '0') + "1\n");
  CHECK(Masked("proc/sys/kernel/random/boot_id", "1b2c3d4e-0000-1111-2222-333344445555\n") ==
        "00000000-0000-0000-0000-000000000001\n");
}

TEST_CASE("aliases are kept of vfio drivers alone", "[snapshot]") {
  CHECK(Masked("lib/modules/6.1/modules.alias",
               "alias pci:v* other\nalias vfio_pci:v000010DEd* nvgrace_gpu_vfio_pci\n") ==
        "alias vfio_pci:v000010DEd* nvgrace_gpu_vfio_pci\n");
}

TEST_CASE("a record of the journal stays one, with the boot's other id", "[snapshot]") {
  const Record record = {.address = *PciAddress::Parse("0000:01:00.0"),
                         .boot_id = "1b2c3d4e-0000-1111-2222-333344445555",
                         .driver = "nvidia"};
  const std::string path = "var/lib/vfio-agent/devices/0000:01:00.0.json";
  const auto masked = ParseRecord(Masked(path, RecordToText(record)));
  REQUIRE(masked.ok());
  CHECK(masked->boot_id == "00000000-0000-0000-0000-000000000001");
  CHECK(masked->driver == "nvidia");
  CHECK(Masked(path, "{\"password\": 1}").empty());
}

TEST_CASE("ids are found in every other text too", "[snapshot]") {
  CHECK(Masked("etc/modprobe.d/file",
               "at ec:0d:9a:11:22:33, 1b2c3d4e-0000-1111-2222-333344445555.") ==
        "at 00:00:00:00:00:01, 00000000-0000-0000-0000-000000000001.");
  // Addresses of PCI functions, ids and ranges of memory are none.
  for (const char* text :
       {"0000:65:00.0", "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00",
        "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200", "fe:ed:fa:ce"}) {
    CHECK(Masked("sys/devices/x/resource", text) == text);
  }
}

TEST_CASE("of the kubelet only what bears on devices and swap is kept", "[snapshot]") {
  using std::string_literals::operator""s;
  CHECK(Masked("proc/77/cmdline",
               "/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0--node-ip=10.1.2.3\0"
               "--fail-swap-on\0false\0--kubeconfig\0/etc/secret\0"s) ==
        "kubelet\0--config=/var/lib/kubelet/config.yaml\0--fail-swap-on=false\0"s);
  CHECK(Masked("proc/78/cmdline", "python3\0--config=/home/ada/x\0"s).empty());
  CHECK(Masked("var/lib/kubelet/kubeadm-flags.env",
               "KUBELET_KUBEADM_ARGS=\"--root-dir=/data/kubelet --node-ip=10.1.2.3\"\n") ==
        "--root-dir=/data/kubelet\n");
  CHECK(Masked("usr/lib/systemd/system/kubelet.service",
               "[Service]\nEnvironment=TOKEN=s3cret\nExecStart=/usr/bin/kubelet "
               "--fail-swap-on=false\n") == "--fail-swap-on=false\n");
  CHECK(
      Masked(
          "var/lib/kubelet/config.yaml",
          "kind: KubeletConfiguration\nclusterDNS:\n- 10.96.0.10\nfailSwapOn: false\nmemorySwap:\n"
          "  swapBehavior: NoSwap\nstaticPodPath: /etc/x\ncpuManagerPolicy: static\n") ==
      "kind: KubeletConfiguration\nfailSwapOn: false\nmemorySwap:\n  swapBehavior: NoSwap\n"
      "cpuManagerPolicy: static\n");
  CHECK(Masked("etc/kubernetes/kubelet/config.json",
               R"({"kind": "K", "clusterDNS": ["10.96.0.10"], "failSwapOn": false})") ==
        "{\n \"kind\": \"K\",\n \"failSwapOn\": false\n}\n");
  CHECK(Masked("var/lib/kubelet/cpu_manager_state",
               R"({"policyName":"static","entries":{"5ec0":{"app":"1-2"}}})") ==
        "{\n \"policyName\": \"static\"\n}\n");
  CHECK(Masked("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
               R"({"Data":{"PodDeviceEntries":[{"PodUID":"5ec0"}]}})") == "{}\n");
  // What is broken stays broken.
  CHECK(Masked("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{\"Da") == "{\n");
}

TEST_CASE("names below sys that have an id in them have another one", "[snapshot]") {
  Masker masker;
  CHECK(MaskPlace("sys/devices/pci0000:00/0000:01:00.0/net/enx0c42a1030065/address", masker) ==
        "sys/devices/pci0000:00/0000:01:00.0/net/enx000000000001/address");
  CHECK(MaskPlace("sys/fs/btrfs/1b2c3d4e-0000-1111-2222-333344445555/devices", masker) ==
        "sys/fs/btrfs/00000000-0000-0000-0000-000000000001/devices");
  CHECK(MaskPlace("proc/spl/kstat/zfs/tank/io", masker) == "proc/spl/kstat/zfs/masked-0001/io");
  CHECK(MaskPlace("sys/bus/pci/devices/0000:01:00.0", masker) ==
        "sys/bus/pci/devices/0000:01:00.0");
}

TEST_CASE("every row of the table is the first that fits some path", "[snapshot]") {
  // What the tests above ask about, so that a row which another one hides is seen.
  std::set<const Mask*> reached;
  for (const char* path : {"sys/d/config",
                           "sys/d/net/e/address",
                           "sys/d/net/e/perm_hwaddr",
                           "sys/d/net/e/phys_switch_id",
                           "sys/d/infiniband/m/node_guid",
                           "sys/d/infiniband/m/ports/1/gids/0",
                           "sys/d/infiniband/m/node_desc",
                           "sys/d/serial",
                           "sys/d/serial_number",
                           "sys/d/unique_id",
                           "sys/d/wwid",
                           "sys/d/vpd",
                           "sys/class/dmi/id/x",
                           "sys/firmware/x",
                           "sys/d/uevent",
                           "sys/d/dm/name",
                           "sys/d/dm/uuid",
                           "proc/cmdline",
                           "proc/1/cmdline",
                           "proc/1/environ",
                           "proc/1/mountinfo",
                           "proc/swaps",
                           "proc/1/net/route",
                           "proc/1/net/ipv6_route",
                           "proc/1/net/if_inet6",
                           "proc/1/cgroup",
                           "proc/1/fd/3",
                           "proc/iomem",
                           "proc/driver/nvidia/gpus/x/information",
                           "proc/sys/kernel/hostname",
                           "proc/sys/kernel/domainname",
                           "etc/hostname",
                           "etc/machine-id",
                           "lib/modules/6/modules.alias",
                           "var/lib/vfio-agent/devices/x.json",
                           "etc/vfio-agent/config.yaml",
                           "usr/share/misc/pci.ids",
                           "sys/d/x",
                           "proc/x",
                           "dev/x",
                           "lib/modules/6/x",
                           "etc/modprobe.d/x.conf",
                           "usr/lib/systemd/system/kubelet.service",
                           "etc/systemd/system/kubelet.service.d/10.conf",
                           "var/lib/kubelet/kubeadm-flags.env",
                           "etc/default/kubelet",
                           "etc/sysconfig/kubelet",
                           "var/lib/kubelet/cpu_manager_state",
                           "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                           "anything"}) {
    reached.insert(&MaskFor(path));
  }
  for (const Mask& mask : Masks()) {
    CAPTURE(mask.pattern);
    CHECK(reached.contains(&mask));
  }
}

}  // namespace
}  // namespace vfio_agent
