#include "iommu/plan/action.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

struct Row {
  Action action;
  std::string op;
  std::string value;
  std::string shell;
};

PciAddress TheGpu() { return At("0000:3b:00.0"); }

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {LoadModule{"vfio-pci"}, "modprobe", "vfio-pci", "modprobe vfio-pci"},
      {SetOverride{TheGpu(), "vfio-pci"}, "override", "vfio-pci",
       "echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.0/driver_override"},
      {SetOverride{TheGpu(), ""}, "override", "",
       "echo > /sys/bus/pci/devices/0000:3b:00.0/driver_override"},
      {Unbind{TheGpu(), "nvidia"}, "unbind", "nvidia",
       "echo 0000:3b:00.0 > /sys/bus/pci/drivers/nvidia/unbind"},
      {Probe{TheGpu(), "vfio-pci"}, "probe", "vfio-pci",
       "echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe"},
      {SetAutoprobe{TheGpu(), false}, "autoprobe", "0",
       "echo 0 > /sys/bus/pci/devices/0000:3b:00.0/sriov_drivers_autoprobe"},
      {SetVfs{TheGpu(), 4}, "vfs", "4", "echo 4 > /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs"},
      {AwaitNode{17}, "await-node", "/dev/vfio/17", "ls -l /dev/vfio/17"},
  };
  return rows;
}

TEST_CASE("every step is the command that a person would type", "[iommu]") {
  for (const Row& row : Rows()) {
    CAPTURE(row.shell);
    CHECK(ToShell(row.action) == row.shell);
    CHECK(OpName(row.action) == row.op);
    CHECK(ValueOf(row.action) == row.value);
  }
}

TEST_CASE("a step names the device that it is about, where there is one", "[iommu]") {
  for (const Row& row : Rows()) {
    CAPTURE(row.shell);
    const PciAddress* const device = DeviceOf(row.action);
    const bool about_a_device = row.op != "modprobe" && row.op != "await-node";
    REQUIRE((device != nullptr) == about_a_device);
    if (device != nullptr) CHECK(*device == TheGpu());
  }
}

}  // namespace
}  // namespace vfio_agent
