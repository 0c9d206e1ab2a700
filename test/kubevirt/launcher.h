// Launcher: how KubeVirt's virt-launcher turns a container's variables into a machine's devices.
//
// Written from KubeVirt's rules and without a line of the agent, so that a rule that the agent
// reads wrongly shows. The rules: a resource's addresses are in PCI_RESOURCE_<NAME> (mediated
// devices in MDEV_PCI_RESOURCE_<NAME>, USB devices in USB_RESOURCE_<NAME>), NAME being the resource
// in upper case with only '/' and '.' replaced by '_'. Each item of a machine takes the first
// address of its resource that is left; a taken address is taken from all resources of the list.
// `gpus` and `hostDevices` are two pools over the same variables. What is left over is ignored, and
// an item that finds nothing is noticed only when the devices are counted at the end.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vfio_agent::kubevirt {

using Variables = std::map<std::string, std::string>;

// The name's part of the three variables.
std::string VariableSuffix(std::string_view resource);
// "dddd:bb:dd.f": hex in either case, exactly four digits of domain.
bool IsPciAddress(std::string_view text);
// The items of a variable: one trailing comma is cut, nothing else is.
std::vector<std::string> SplitVariable(std::string_view value);

struct Item {
  std::string name;
  std::string resource;  // deviceName
};

struct Machine {
  std::vector<Item> gpus;
  std::vector<Item> host_devices;
};
// One with `count` items of the resource in `gpus`, or in `hostDevices`.
Machine MachineWith(const std::string& resource, size_t count, bool gpus = true);

struct GuestDevice {
  std::string alias;    // "gpu-gpu1", "hostdevice-nic1"
  std::string address;  // or a mediated device's UUID, or a USB "bus:device"
  bool operator==(const GuestDevice&) const = default;
};

// The devices of the machine in its order, gpus first. FailedPrecondition where the machine would
// not start: an address that is none, a count that does not match, a device that is there twice.
absl::StatusOr<std::vector<GuestDevice>> StartMachine(const Machine& machine,
                                                      const Variables& variables);

}  // namespace vfio_agent::kubevirt
