// What a snapshot keeps of a host's command line, mounts, routes, names and processes.
#include <set>

#include "sysfs/use/cgroup_owner.h"
#include "sysfs/use/network_use.h"
#include "sysfs/use/process_use.h"
#include "sysfs/use/storage_use.h"
#include "test/snapshot/masked.h"

namespace vfio_agent {
namespace {

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

TEST_CASE("names below sys that have an id in them have another one", "[snapshot]") {
  Masker masker;
  CHECK(MaskPlace("sys/devices/pci0000:00/0000:01:00.0/net/enx0c42a1030065/address", masker) ==
        "sys/devices/pci0000:00/0000:01:00.0/net/enx000000000001/address");
  CHECK(MaskPlace("sys/fs/btrfs/1b2c3d4e-0000-1111-2222-333344445555/devices", masker) ==
        "sys/fs/btrfs/00000000-0000-0000-0000-000000000001/devices");
  const std::string own = "sys/bus/mdev/devices/00000000-3b00-8f10-8001-cb5fb97d4a6f";
  CHECK(MaskPlace(own, masker) == own);
  CHECK(MaskPlace("sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", masker) !=
        "sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
  CHECK(MaskPlace("proc/spl/kstat/zfs/tank/io", masker) == "proc/spl/kstat/zfs/masked-0001/io");
  CHECK(MaskPlace("sys/bus/pci/devices/0000:01:00.0", masker) ==
        "sys/bus/pci/devices/0000:01:00.0");
}

TEST_CASE("what was said about a path has its other name too", "[snapshot]") {
  Masker masker;
  const auto message = [&masker](const std::string& text, const std::string& path) {
    return MaskMessage(text, path, masker);
  };
  const std::string net = "sys/devices/pci0000:00/0000:01:00.0/net/";
  CHECK(message("read " + net + "enx0c42a1030065/flags: Input/output error",
                net + "enx0c42a1030065/flags") ==
        "read " + net + "enx000000000001/flags: Input/output error");
  // A directory above it, and its last part alone.
  CHECK(message("open " + net + "enx0c42a1030065: Permission denied",
                net + "enx0c42a1030065/device") ==
        "open " + net + "enx000000000001: Permission denied");
  CHECK(message("etc/acme/x: readlink x: Permission denied", "etc/acme/x") ==
        "etc/masked-0001/masked-0002: readlink masked-0002: Permission denied");
  CHECK(message("open proc/spl/kstat/zfs/my pool/io: Permission denied",
                "proc/spl/kstat/zfs/my pool/io") ==
        "open proc/spl/kstat/zfs/masked-0003/io: Permission denied");
  // Others, of which nobody was asked.
  CHECK(message("'/srv/acme' and sys/x/enx0c42a1030066.", "") ==
        "'/srv/masked-0001' and sys/x/enx000000000002.");
}

TEST_CASE("the name of a program is kept where it is well known or has a remedy", "[snapshot]") {
  for (const char* name : {"nvidia-persiste\n", "qemu-system-x86\n", "python3\n", "Xorg\n",
                           "kubelet\n", "containerd-shim\n", "systemd-logind\n"}) {
    CHECK(Masked("proc/4242/comm", name) == name);
  }
  CHECK(Masked("proc/4242/comm", "acme-trainer\n") == "masked-0001\n");
  // libvirt names threads after the guest.
  CHECK(Masked("proc/4242/comm", "qemu:acme-db\n") == "qemu:masked-0001\n");
  CHECK(Masked("proc/4242/comm", "qemu-acme\n") == "qemu-masked-0001\n");
}

}  // namespace
}  // namespace vfio_agent
