#include "sysfs/device/pci_device.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";

// Reads the one device through the node, as the agent does.
PciDevice Read(const FakeTree& fake, const std::string& address = kGpu) {
  NodeFacts facts = fake.Facts();
  return Find(facts, address);
}

TEST_CASE("every attribute of a function is read", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu, .driver = "nvidia", .group = 17});
  fake.Attribute(kGpu, "numa_node", "1").Attribute(kGpu, "boot_vga", "1");
  fake.Attribute(kGpu, "sriov_totalvfs", "16").Attribute(kGpu, "sriov_drivers_autoprobe", "1");
  const PciDevice device = Read(fake);
  CHECK(device.errors.empty());
  CHECK(device.address == At(kGpu));
  CHECK(device.vendor == 0x10de);
  CHECK(device.device == 0x2330);
  CHECK(device.subsystem_vendor.is(0x10de));
  CHECK(device.subsystem_device.is(0x1839));
  CHECK(device.class_code == 0x030200);
  CHECK(device.Class16() == 0x0302);
  CHECK(device.revision.is(0xa1));
  CHECK(device.driver == "nvidia");
  CHECK(device.group == 17);
  CHECK(device.numa_node == 1);
  CHECK(device.sriov_total_vfs.is(16));
  CHECK(device.vfs_autoprobe.is(true));
  CHECK(device.boot_vga.is(true));
  CHECK(device.reset_method.is("flr bus"));
  CHECK(device.power_state.is("D0"));
  CHECK(device.modalias == "pci:v000010DEd00002330sv000010DEsd00001839bc03sc02i00");
  CHECK(device.has_override);
  CHECK(device.config.pcie_type.is(PcieType::kEndpoint));
  CHECK(device.config.flr.is(true));
  CHECK(device.config.readable_bytes == 4096);
}

TEST_CASE("an unbound function without an IOMMU has neither driver nor group", "[sysfs]") {
  FakeTree fake;
  const PciDevice device = Read(fake.Add({.address = kGpu}));
  CHECK_FALSE(device.driver);
  CHECK_FALSE(device.group);
  CHECK(device.errors.empty());
}

TEST_CASE("group 0 is a group like any other", "[sysfs]") {
  FakeTree fake;
  CHECK(Read(fake.Add({.address = kGpu, .group = 0})).group == 0);
}

TEST_CASE("a NUMA node of -1 is none, 0 is one", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu});
  CHECK_FALSE(Read(fake).numa_node);
  CHECK(Read(fake.Attribute(kGpu, "numa_node", "0")).numa_node == 0);
}

TEST_CASE("whether D3cold is allowed is read of endpoints alone", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu, .class_code = "0x060400", .config = PortConfig(PcieType::kRootPort)});
  CHECK(Read(fake.Attribute(kGpu, "d3cold_allowed", "1")).d3cold_allowed.absent());
  fake.Remove(FakeTree::Of(kGpu, "config"))
      .Write(FakeTree::Of(kGpu, "config"), EndpointConfig().text());
  CHECK(Read(fake).d3cold_allowed.is(true));
  CHECK(Read(fake.Attribute(kGpu, "d3cold_allowed", "0")).d3cold_allowed.is(false));
  CHECK(Read(fake.Remove(FakeTree::Of(kGpu, "d3cold_allowed"))).d3cold_allowed.absent());
}

TEST_CASE("an attribute that the kernel does not have is absent", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu});
  fake.Remove(FakeTree::Of(kGpu, "reset_method")).Remove(FakeTree::Of(kGpu, "driver_override"));
  fake.Remove(FakeTree::Of(kGpu, "numa_node")).Remove(FakeTree::Of(kGpu, "modalias"));
  const PciDevice device = Read(fake);
  CHECK(device.reset_method.absent());
  CHECK(device.boot_vga.absent());
  CHECK(device.sriov_total_vfs.absent());
  CHECK_FALSE(device.has_override);
  CHECK_FALSE(device.numa_node);
  CHECK(device.modalias.empty());
  CHECK(device.errors.empty());
}

TEST_CASE("an empty reset_method is known: the kernel has no way", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu}).Attribute(kGpu, "reset_method", "");
  CHECK(Read(fake).reset_method.is(""));
}

TEST_CASE("the bridges above a function are named from the root port down", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:00:01.0", .class_code = "0x060400"})
      .Add({.address = "0000:01:00.0", .class_code = "0x060400", .parent = "0000:00:01.0"})
      .Add({.address = "0000:02:04.0", .class_code = "0x060400", .parent = "0000:01:00.0"})
      .Add({.address = kGpu, .parent = "0000:02:04.0"});
  const PciDevice device = Read(fake);
  CHECK(device.path ==
        std::vector<PciAddress>{At("0000:00:01.0"), At("0000:01:00.0"), At("0000:02:04.0")});
  CHECK(device.parent == At("0000:02:04.0"));
  CHECK(device.root == "pci0000:00");
  const PciDevice port = Read(fake, "0000:00:01.0");
  CHECK(port.path.empty());
  CHECK_FALSE(port.parent);
  CHECK(port.root == "pci0000:00");
}

TEST_CASE("a function behind VMD has its path in its own domain only", "[sysfs]") {
  FakeTree fake;
  const std::string vmd = "sys/devices/pci0000:64/0000:64:00.5/pci10000:00/10000:00:02.0/";
  fake.Write(vmd + "10000:01:00.0/vendor", "0x10de\n");
  fake.Link("sys/bus/pci/devices/10000:01:00.0", vmd + "10000:01:00.0");
  const PciDevice device = Read(fake, "10000:01:00.0");
  CHECK(device.path == std::vector<PciAddress>{At("10000:00:02.0")});
  CHECK(device.root == "pci10000:00");
}

TEST_CASE("a tree without device paths tells no parents", "[sysfs]") {
  FakeTree fake;
  fake.Write(FakeTree::Of(kGpu, "vendor"), "0x10de\n");  // a directory in place of the link
  const PciDevice device = Read(fake);
  CHECK(device.vendor == 0x10de);
  CHECK(device.root.empty());
  CHECK(device.path.empty());
}

TEST_CASE("a VF names its physical function, which names its VFs", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0001:04:00.0"}).Add({.address = "0001:04:00.3"});
  fake.Add({.address = "0001:04:00.2"});
  const std::string dir = "sys/devices/pci0001:04/";
  for (const char* vf : {"0001:04:00.2", "0001:04:00.3"}) {
    fake.Link(dir + vf + "/physfn", dir + "0001:04:00.0");
  }
  fake.Link(dir + "0001:04:00.0/virtfn1", dir + "0001:04:00.3");
  fake.Link(dir + "0001:04:00.0/virtfn0", dir + "0001:04:00.2");
  CHECK(Read(fake, "0001:04:00.0").virtfns ==
        std::vector<PciAddress>{At("0001:04:00.2"), At("0001:04:00.3")});
  CHECK_FALSE(Read(fake, "0001:04:00.0").IsVf());
  CHECK(Read(fake, "0001:04:00.2").physfn == At("0001:04:00.0"));
  CHECK(Read(fake, "0001:04:00.2").IsVf());
}

TEST_CASE("regions are read with their sizes, unused ones are left out", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu});
  fake.Write(FakeTree::Of(kGpu, "resource"),
             "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
             "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
             "0x0000210000000000 0x0000211fffffffff 0x000000000014220c\n"
             "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
             "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
             "0x000000000000e000 0x000000000000e07f 0x0000000000040101\n"
             "0x00000000d1000000 0x00000000d107ffff 0x0000000000046200\n"
             "0x0000219000000000 0x000021903fffffff 0x000000000014220c\n");  // a VF's region
  CHECK(Read(fake).bars == std::vector<Bar>{{.index = 0, .size_bytes = 16ull << 20},
                                            {.index = 2, .size_bytes = 128ull << 30},
                                            {.index = 5, .size_bytes = 128},
                                            {.index = 6, .size_bytes = 512ull << 10}});
}

TEST_CASE("the name of the vfio device node is read where there is one", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu, .driver = "vfio-pci", .group = 17});
  CHECK_FALSE(Read(fake).vfio_cdev);
  fake.Write(FakeTree::Of(kGpu, "vfio-dev/vfio3/dev"), "242:3\n");
  CHECK(Read(fake).vfio_cdev == "vfio3");
}

TEST_CASE("the header type decides what is a bridge, not the class", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kGpu, .class_code = "0x068000"});  // an NVSwitch is an endpoint
  fake.Add({.address = "0000:00:01.0",
            .class_code = "0x088000",
            .config = PortConfig(PcieType::kRootPort)});
  CHECK_FALSE(Read(fake).IsBridge());
  CHECK(Read(fake, "0000:00:01.0").IsBridge());
}

TEST_CASE("without a header the class tells a bridge", "[sysfs]") {
  const auto [code, bridge] = GENERATE(table<std::string, bool>(
      {{"0x060400", true}, {"0x060900", true}, {"0x068000", false}, {"0x060000", false}}));
  CAPTURE(code);
  FakeTree fake;
  fake.Add({.address = kGpu, .class_code = code, .config = DeadConfig()});
  CHECK(Read(fake).IsBridge() == bridge);
  fake.Remove(FakeTree::Of(kGpu, "config"));
  CHECK(Read(fake).IsBridge() == bridge);
}

// drivers/pci/probe.c, pci_scan_slot(): every function but the first is marked, whatever its own
// header says.
TEST_CASE("a second function is of a multifunction device whatever its header says", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:3b:00.0", .config = EndpointConfig(true)})
      .Add({.address = "0000:3b:00.1", .config = EndpointConfig(false)});
  CHECK(Read(fake, "0000:3b:00.0").config.multifunction);
  CHECK(Read(fake, "0000:3b:00.1").config.multifunction);
}

TEST_CASE("R30: a root port counts the fatal errors below it", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:00:01.0",
            .class_code = "0x060400",
            .driver = "pcieport",
            .group = 1,
            .config = PortConfig(PcieType::kRootPort)});
  CHECK(fake.Facts().devices[0].aer_fatal.absent());
  fake.Attribute("0000:00:01.0", "aer_rootport_total_err_fatal", "2");
  CHECK(fake.Facts().devices[0].aer_fatal.is(2));
}

TEST_CASE("R30: fatal AER errors are counted of what is with a vfio driver", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:3b:00.0", .driver = "vfio-pci", .group = 1});
  fake.Add({.address = "0000:5e:00.0", .driver = "nvidia", .group = 2});
  const auto fatal = [&](size_t device) { return fake.Facts().devices[device].aer_fatal; };
  CHECK(fatal(0).absent());
  for (const char* address : {"0000:3b:00.0", "0000:5e:00.0"}) {
    fake.Attribute(address, "aer_dev_fatal", "Undefined 0\nDLP 2\nSDES 1\nTOTAL_ERR_FATAL 3");
  }
  CHECK(fatal(0).is(3));
  CHECK(fatal(1).absent());
  fake.Attribute("0000:3b:00.0", "aer_dev_fatal", GENERATE("", "TOTAL_ERR_FATAL x", "DLP 1"));
  CHECK(fatal(0).unknown());
  CHECK_FALSE(fake.Facts().devices[0].errors.empty());
}

}  // namespace
}  // namespace vfio_agent
