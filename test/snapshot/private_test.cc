// Nothing private is anywhere in a snapshot, whatever the node has.
#include <fstream>

#include "agent/snapshot/archive.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// A node that has everything that is nobody else's business, each with a word to look for.
constexpr char kNode[] = R"(
name: private
host: {iommu_active: true, iommu: intel, cmdline: "root=UUID=5ec0e700-aaaa-bbbb-cccc-00005ec0e701 s3cretword intel_iommu=on ip=10.94.95.96\n"}
processes:
- {pid: 4242, comm: python3, cgroup: "0::/kubepods.slice/kubepods-pod5ec0e700_aaaa_bbbb_cccc_00005ec0e702.slice/cri-containerd-5ec0e7005ec0e7005ec0e7005ec0e7005ec0e7005ec0e7005ec0e7005ec0e703.scope\n", fds: ["/dev/nvidia0", "/home/s3cretuser/diary"]}
- {pid: 4244, comm: "qemu:s3cretvm", cgroup: "0::/system.slice/x.service\n", fds: ["/dev/nvidia0"]}
- {pid: 77, comm: kubelet, cgroup: "0::/system.slice/kubelet.service\n", fds: []}
- {pid: 4243, comm: s3cretcomm, cgroup: "0::/\n", fds: ["/home/s3cretuser/other"]}
files:
  proc/4242/cmdline: "python3 --password=s3cretpassword"
  proc/77/cmdline: "kubelet\0--config=/etc/s3cretcustomer/s3cret.yaml\0--root-dir=/s3cretroot"
  etc/s3cretcustomer/s3cret.yaml: "failSwapOn: false # s3cretadmin\n"
  etc/modprobe.d/s3cret.conf: "# s3cret\ninstall x curl -u admin:s3cret http://10.94.95.98/\nblacklist nouveau\n"
  var/lib/kubelet/device-plugins/s3cret.sock: ""
  proc/4242/environ: "TOKEN=s3crettoken"
  proc/sys/kernel/hostname: "s3crethost\n"
  proc/sys/kernel/random/boot_id: "5ec0e700-aaaa-bbbb-cccc-00005ec0e704\n"
  etc/machine-id: "5ec0e7005ec0e7005ec0e7005ec0e705\n"
  sys/class/dmi/id/product_serial: "s3cretserial\n"
  proc/driver/nvidia/gpus/0000:01:00.0/information: |
    Model: 		 NVIDIA H100
    GPU UUID: 	 GPU-5ec0e700-aaaa-bbbb-cccc-00005ec0e706
    Device Minor: 	 0
  proc/1/mountinfo: |
    24 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
    25 24 0:50 / /home/s3cretuser rw - nfs4 s3cretfiler:/s3cretexport rw,addr=10.94.95.97
  proc/swaps: |
    Filename Type Size Used Priority
    /home/s3cretuser/swapfile file 1 0 -2
  proc/1/net/route: |
    Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
    eth0	00000000	5EC0E707	0003	0	0	100	00000000	0	0	0
  proc/1/net/ipv6_route: ""
  proc/1/net/if_inet6: "5ec0e7005ec0e7005ec0e7005ec0e708 02 40 00 80 eth0\n"
devices:
- {address: "0000:01:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: nvidia, iommu_group: 14, attributes: {"uevent": "DRIVER=nvidia\nSERIAL=s3cretserial\n", "serial": "s3cretserial\n"}}
- {address: "0000:02:00.0", vendor: "8086", device: "1572", class: "0x020000", driver: i40e, iommu_group: 15, attributes: {"net/eth0/address": "5e:c0:e7:00:00:09\n", "net/eth0/flags": "0x1003\n", "net/eth0/perm_hwaddr": "5e:c0:e7:00:00:09\n"}}
- {address: "0000:03:00.0", vendor: "144d", device: "a80a", class: "0x010802", driver: nvme, iommu_group: 16, attributes: {"nvme/nvme0/serial": "s3cretserial\n", "nvme/nvme0/nvme0n1/dev": "259:0\n", "nvme/nvme0/nvme0n1/size": "8\n", "nvme/nvme0/nvme0n1/nvme0n1p1/dev": "259:2\n", "nvme/nvme0/nvme0n1/nvme0n1p1/partition": "1\n"}}
links:
  sys/class/block/nvme0n1: "../../devices/pci0000:03/0000:03:00.0/nvme/nvme0/nvme0n1"
)";

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Where one of the words is: in a name, a link's target or a text.
std::string Find(const std::string& root, const std::vector<std::string>& words) {
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    std::string all = entry.path().string().substr(root.size());
    if (entry.is_symlink()) {
      all += " " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      all += " " + std::string(std::istreambuf_iterator<char>(file), {});
    }
    for (const std::string& word : words) {
      if (Lower(all).find(word) != std::string::npos) return all;
    }
  }
  return "";
}

TEST_CASE("nothing that is private on a node is in its snapshot", "[node]") {
  const Node node(Node::MachineText{kNode});
  const std::string file = node.dir().path() + "/node.tar.gz";
  const ProgramResult taken = node.Run({"snapshot", file});
  INFO(taken.out << taken.err);
  REQUIRE(taken.exit_code == 0);
  const std::string place = node.dir().path() + "/unpacked";
  fs::create_directory(place);
  REQUIRE(UnpackArchive(file, place).ok());
  CHECK(Find(place, {"s3cret", "5ec0e7", "5e:c0:e7", "10.94.95"}).empty());
  // And what is not private still is.
  CHECK_FALSE(Find(place, {"intel_iommu=on"}).empty());
  const ProgramResult plan = RunAgent({"plan", "--root", file});
  CHECK_THAT(plan.out, Catch::Contains("is held open by pid 4242 (python3, pod 00000000-0000-"));
  CHECK_THAT(plan.out, Catch::Contains("qemu:masked-"));
  CHECK_THAT(plan.out, !Catch::Contains("s3cret"));
  const ProgramResult doctor = RunAgent({"doctor", "--root", file});
  CHECK_THAT(doctor.out, Catch::Contains("/etc/masked-") && !Catch::Contains("s3cret"));
}

}  // namespace
}  // namespace vfio_agent
