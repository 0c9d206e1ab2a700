// ReadPciDevice: one device whose directory is the input, in the words of node_text.h ("vendor=…",
// "driver>…", "config#…").
#include "sysfs/device/config_space.h"
#include "sysfs/device/pci_device.h"
#include "sysfs/tree.h"
#include "test/fuzz/device_rules.h"
#include "test/fuzz/node_text.h"
#include "test/fuzz/require.h"
#include "test/fuzz/scratch.h"

namespace vfio_agent {
namespace {

constexpr char kAddress[] = "0000:3b:00.0";

void Check(std::string_view text) {
  const std::string root = FreshRoot();
  MakeNode(std::string("@0000:3a:01.0\n@") + kAddress + "^0000:3a:01.0\n" + std::string(text),
           root);
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  Require(tree.ok(), "the root can be opened");
  ConfigReader config(*tree);
  const PciAddress address = *PciAddress::Parse(kAddress);
  const absl::StatusOr<PciDevice> device = ReadPciDevice(*tree, config, address);
  Require(device.ok(), "a device that is there is read, whatever is odd",
          device.status().ToString());
  Require(device->address == address, "the device is the one that was asked for");
  Require(device->parent == PciAddress::Parse("0000:3a:01.0").value(), "the bridge is above it");
  RequireSoundDevice(*device);
  Require(*ReadPciDevice(*tree, config, address) == *device, "the same files give the same facts");
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  return 0;
}
