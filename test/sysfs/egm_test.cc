#include "sysfs/device/egm.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

// What the regions are, one line each: "egm4 node 0008:01:00.0 0009:01:00.0".
std::string Regions(const FakeTree& fake) {
  std::string text;
  for (const EgmRegion& region : ReadEgmRegions(fake.Open())) {
    text += region.name + (region.has_node ? " node" : "");
    for (const PciAddress& gpu : region.gpus) text += " " + gpu.ToString();
    if (!region.fault.empty()) text += " fault: " + region.fault;
    text += "\n";
  }
  return text;
}

TEST_CASE("a machine without Extended GPU Memory has no region", "[sysfs]") {
  FakeTree fake;
  CHECK(Regions(fake).empty());
  fake.Write("sys/class/egm/version", "1\n");
  fake.Write("sys/class/egm/egmX/gpu_devices", "0008:01:00.0\n");
  CHECK(Regions(fake).empty());
}

TEST_CASE("a region's GPUs stand in a file, one a line, or are links", "[sysfs]") {
  FakeTree fake;
  fake.Write("dev/egm4", "");
  SECTION("in a file") {
    fake.Write("sys/class/egm/egm4/gpu_devices", "0009:01:00.0\n0008:01:00.0\n");
  }
  SECTION("as links") {
    fake.Link("sys/class/egm/egm4/0008:01:00.0", "sys/devices/pci0008:00/0008:01:00.0");
    fake.Link("sys/class/egm/egm4/0009:01:00.0", "sys/devices/pci0009:00/0009:01:00.0");
    fake.Write("sys/class/egm/egm4/egm_size", "0x6fc0000000\n");
  }
  SECTION("in both, each with one that the other lacks") {
    fake.Write("sys/class/egm/egm4/gpu_devices", "0008:01:00.0\n");
    fake.Link("sys/class/egm/egm4/0008:01:00.0", "sys/devices/pci0008:00/0008:01:00.0");
    fake.Link("sys/class/egm/egm4/0009:01:00.0", "sys/devices/pci0009:00/0009:01:00.0");
  }
  CHECK(Regions(fake) == "egm4 node 0008:01:00.0 0009:01:00.0\n");
  CHECK(fake.Facts().egm == ReadEgmRegions(fake.Open()));
}

TEST_CASE("regions come by number, with or without their nodes", "[sysfs]") {
  FakeTree fake;
  for (const char* name : {"egm10", "egm5", "egm4"}) {
    fake.Write(absl::StrFormat("sys/class/egm/%s/gpu_devices", name), "0008:01:00.0\n");
  }
  fake.Write("dev/egm5", "");
  CHECK(Regions(fake) ==
        "egm4 0008:01:00.0\n"
        "egm5 node 0008:01:00.0\n"
        "egm10 0008:01:00.0\n");
}

TEST_CASE("a list of GPUs that is not understood is none, and says why", "[sysfs]") {
  FakeTree fake;
  struct Row {
    std::string text, fault;
  };
  const Row row =
      GENERATE(Row{"0008:01:00.0\n\x1b[2J\n", "'?[2J' in its gpu_devices is no address"},
               Row{"0008:01:00.0 0009:01:00\n", "'0009:01:00' in its gpu_devices is no address"},
               Row{"\n", "the kernel names no GPU of it"});
  fake.Write("sys/class/egm/egm4/gpu_devices", row.text);
  CHECK(Regions(fake) == "egm4 fault: " + row.fault + "\n");
}

TEST_CASE("an endless list of GPUs, and endlessly many regions, are cut off", "[sysfs]") {
  FakeTree fake;
  std::string endless;
  for (int i = 0; i < 1000; ++i) endless += "0008:01:00.0\n";
  fake.Write("sys/class/egm/egm0/gpu_devices", endless);
  for (int i = 1; i < 100; ++i) {
    fake.Write(absl::StrFormat("sys/class/egm/egm%d/gpu_devices", i), "0008:01:00.0\n");
  }
  const std::vector<EgmRegion> regions = ReadEgmRegions(fake.Open());
  CHECK(regions.size() == 64);
  CHECK(regions.front().gpus.empty());
  CHECK_FALSE(regions.front().fault.empty());
}

}  // namespace
}  // namespace vfio_agent
