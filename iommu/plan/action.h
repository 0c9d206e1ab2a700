// Action: one step that changes the kernel's state. One struct each, with just what it needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sysfs/device/pci_address.h"

namespace vfio_agent {

struct LoadModule {
  std::string module;
  bool operator==(const LoadModule&) const = default;
};
struct SetOverride {
  PciAddress device;
  std::string driver;  // "" takes the override away
  bool operator==(const SetOverride&) const = default;
};
struct Unbind {
  PciAddress device;
  std::string driver;  // the one it is bound to now
  bool operator==(const Unbind&) const = default;
};
// Asks the kernel to find a driver, then reads the driver link back.
struct Probe {
  PciAddress device;
  std::string expect;  // the driver that must have taken it; "" = any, or none
  bool operator==(const Probe&) const = default;
};
// Lets the device into D3cold, or keeps it out: some never wake from there.
struct SetD3cold {
  PciAddress device;
  bool allowed = false;
  bool operator==(const SetD3cold&) const = default;
};
// Waits until dev/vfio/<group> is there.
struct AwaitNode {
  int group = 0;
  bool operator==(const AwaitNode&) const = default;
};
// Lets host drivers take the virtual functions of a physical function as they appear, or not.
struct SetAutoprobe {
  PciAddress device;
  bool on = false;
  bool operator==(const SetAutoprobe&) const = default;
};
// Makes that many virtual functions of a physical function that has none, or removes them all (0).
struct SetVfs {
  PciAddress device;
  int count = 0;
  bool operator==(const SetVfs&) const = default;
};
// Has the parent's driver make a mediated device, then waits until its node is there.
struct CreateMdev {
  PciAddress parent;
  std::string type;  // the type's id
  std::string uuid;
  bool operator==(const CreateMdev&) const = default;
};
struct RemoveMdev {
  std::string uuid;
  bool operator==(const RemoveMdev&) const = default;
};
// Gives a virtual function that stays on its vendor's driver a vGPU type, or takes it away (0).
struct SetVgpuType {
  PciAddress device;
  int type = 0;
  std::string name;  // of the type, for people and the journal; empty where it is taken away
  bool operator==(const SetVgpuType&) const = default;
};
using Action = std::variant<LoadModule, SetD3cold, SetOverride, Unbind, Probe, AwaitNode,
                            SetAutoprobe, SetVfs, CreateMdev, RemoveMdev, SetVgpuType>;

// "modprobe", "d3cold", "override", "unbind", "probe", "await-node", "autoprobe", "vfs",
// "create-mdev", "remove-mdev", "set-vgpu-type": the `op` of the plan's JSON.
std::string_view OpName(const Action& action);
// The step as the shell command a person would type: the text of plan, log and tests.
std::string ToShell(const Action& action);
// The device it is about, inside `action`; null for modprobe and await-node, and
// for those of mediated devices: they move no PCI function.
const PciAddress* DeviceOf(const Action& action);
// The devices that `actions` are about, in order, each once.
std::vector<PciAddress> DevicesOf(std::span<const Action> actions);
// The value of the plan's JSON: the driver, module, node, uuid or type.
std::string ValueOf(const Action& action);

}  // namespace vfio_agent
