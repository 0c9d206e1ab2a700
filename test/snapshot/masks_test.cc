// What a snapshot keeps of each text. One row of the table, one test; mask_host_test.cc and
// mask_kubelet_test.cc have those of mounts, routes, processes and the kubelet.
#include <set>

#include "agent/work/journal.h"
#include "sysfs/use/display_use.h"
#include "sysfs/use/process_use.h"
#include "test/snapshot/masked.h"

namespace vfio_agent {
namespace {

constexpr char kNet[] = "sys/devices/pci0000:00/0000:00:01.0/net/eth0/";
constexpr char kRdma[] = "sys/devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0/";

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
  CHECK(masker.Word("masked-0042") == "masked-0042");
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
  for (const char* path : {"lib/modules/6.1/modules.alias", "usr/lib/modules/6.1/modules.alias"}) {
    CHECK(Masked(path, "alias pci:v* other\nalias vfio_pci:v000010DEd* nvgrace_gpu_vfio_pci\n") ==
          "alias vfio_pci:v000010DEd* nvgrace_gpu_vfio_pci\n");
  }
  // Where lib is a link, as Debian has it.
  CHECK(Masked("usr/lib/modules/6.1/modules.dep", "kernel/vfio-pci.ko:\n") ==
        "kernel/vfio-pci.ko:\n");
}

TEST_CASE("of modprobe.d only the rules that keep a known module off are kept", "[snapshot]") {
  for (const char* dir : {"etc/modprobe.d/", "usr/lib/modprobe.d/"}) {
    CHECK(Masked(std::string(dir) + "acme.conf",
                 "# ask ada@acme\nblacklist nouveau # s3cret\nblacklist acme_driver\n"
                 "install nvidia-drm curl -u admin:s3cret http://10.1.2.3/ || /bin/true\n"
                 "install vfio curl -u admin:s3cret http://10.1.2.3/\n"
                 "options nvidia NVreg_X=s3cret\nalias nouveau s3cret\n") ==
          "blacklist nouveau\ninstall nvidia_drm /bin/false\n");
  }
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
  CHECK(Masked("sys/module/x/parameters/file",
               "at ec:0d:9a:11:22:33, 1b2c3d4e-0000-1111-2222-333344445555.") ==
        "at 00:00:00:00:00:01, 00000000-0000-0000-0000-000000000001.");
  // Addresses of PCI functions, ids and ranges of memory are none.
  for (const char* text :
       {"0000:65:00.0", "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00",
        "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200", "fe:ed:fa:ce"}) {
    CHECK(Masked("sys/devices/x/resource", text) == text);
  }
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
                           "proc/1/comm",
                           "proc/1/fd/3",
                           "proc/iomem",
                           "proc/driver/nvidia/gpus/x/information",
                           "proc/sys/kernel/hostname",
                           "proc/sys/kernel/domainname",
                           "etc/hostname",
                           "etc/machine-id",
                           "lib/modules/6/modules.alias",
                           "usr/lib/modules/6/modules.alias",
                           "var/lib/vfio-agent/devices/x.json",
                           "etc/vfio-agent/config.yaml",
                           "usr/share/misc/pci.ids",
                           "sys/d/x",
                           "proc/x",
                           "dev/x",
                           "lib/modules/6/x",
                           "usr/lib/modules/6/x",
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
