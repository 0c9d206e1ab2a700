#include "iommu/plan/action.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"

namespace vfio_agent {
namespace {

std::string Shell(const LoadModule& a) { return absl::StrFormat("modprobe %s", a.module); }
std::string Shell(const SetOverride& a) {
  // An empty write would do nothing: the kernel wants a newline to take the override away.
  const std::string word = a.driver.empty() ? "" : a.driver + " ";
  return absl::StrFormat("echo %s> /%s", word, OverridePath(a.device));
}
std::string Shell(const SetD3cold& a) {
  return absl::StrFormat("echo %d > /%s", a.allowed ? 1 : 0, D3coldPath(a.device));
}
std::string Shell(const Unbind& a) {
  return absl::StrFormat("echo %s > /%s", a.device.ToString(), UnbindPath(a.driver));
}
std::string Shell(const Probe& a) {
  return absl::StrFormat("echo %s > /%s", a.device.ToString(), kDriversProbe);
}
std::string Shell(const AwaitNode& a) { return absl::StrFormat("ls -l /%s", GroupNode(a.group)); }
std::string Shell(const CreateMdev& a) {
  return absl::StrFormat("echo %s > /%s", a.uuid, MdevCreatePath(a.parent, a.type));
}
std::string Shell(const RemoveMdev& a) {
  return absl::StrFormat("echo 1 > /%s/remove", MdevDir(a.uuid));
}

std::string Shell(const SetAutoprobe& a) {
  return absl::StrFormat("echo %d > /%s", a.on ? 1 : 0, VfsAutoprobePath(a.device));
}
std::string Shell(const SetVfs& a) {
  return absl::StrFormat("echo %d > /%s", a.count, NumVfsPath(a.device));
}

std::string Shell(const SetVgpuType& a) {
  return absl::StrFormat("echo %d > /%s", a.type, CurrentVgpuPath(a.device));
}

std::string_view Op(const LoadModule&) { return "modprobe"; }
std::string_view Op(const SetOverride&) { return "override"; }
std::string_view Op(const SetD3cold&) { return "d3cold"; }
std::string_view Op(const Unbind&) { return "unbind"; }
std::string_view Op(const Probe&) { return "probe"; }
std::string_view Op(const AwaitNode&) { return "await-node"; }
std::string_view Op(const SetAutoprobe&) { return "autoprobe"; }
std::string_view Op(const SetVfs&) { return "vfs"; }
std::string_view Op(const CreateMdev&) { return "create-mdev"; }
std::string_view Op(const RemoveMdev&) { return "remove-mdev"; }
std::string_view Op(const SetVgpuType&) { return "set-vgpu-type"; }

std::string Value(const LoadModule& a) { return a.module; }
std::string Value(const SetOverride& a) { return a.driver; }
std::string Value(const SetD3cold& a) { return a.allowed ? "1" : "0"; }
std::string Value(const Unbind& a) { return a.driver; }
std::string Value(const Probe& a) { return a.expect; }
std::string Value(const AwaitNode& a) { return "/" + GroupNode(a.group); }
std::string Value(const SetAutoprobe& a) { return a.on ? "1" : "0"; }
std::string Value(const SetVfs& a) { return absl::StrFormat("%d", a.count); }
std::string Value(const CreateMdev& a) { return a.uuid; }
std::string Value(const RemoveMdev& a) { return a.uuid; }
std::string Value(const SetVgpuType& a) { return absl::StrFormat("%d", a.type); }

const PciAddress* Device(const SetOverride& a) { return &a.device; }
const PciAddress* Device(const SetD3cold& a) { return &a.device; }
const PciAddress* Device(const Unbind& a) { return &a.device; }
const PciAddress* Device(const Probe& a) { return &a.device; }
const PciAddress* Device(const SetAutoprobe& a) { return &a.device; }
const PciAddress* Device(const SetVfs& a) { return &a.device; }
const PciAddress* Device(const SetVgpuType& a) { return &a.device; }
const PciAddress* Device(const LoadModule&) { return nullptr; }
const PciAddress* Device(const AwaitNode&) { return nullptr; }
const PciAddress* Device(const CreateMdev&) { return nullptr; }
const PciAddress* Device(const RemoveMdev&) { return nullptr; }

}  // namespace

std::string_view OpName(const Action& action) {
  return std::visit([](const auto& a) { return Op(a); }, action);
}
std::string ToShell(const Action& action) {
  return std::visit([](const auto& a) { return Shell(a); }, action);
}
const PciAddress* DeviceOf(const Action& action) {
  return std::visit([](const auto& a) { return Device(a); }, action);
}
std::vector<PciAddress> DevicesOf(std::span<const Action> actions) {
  std::vector<PciAddress> devices;
  for (const Action& action : actions) {
    const PciAddress* const device = DeviceOf(action);
    if (device != nullptr && !std::ranges::count(devices, *device)) devices.push_back(*device);
  }
  return devices;
}
std::string ValueOf(const Action& action) {
  return std::visit([](const auto& a) { return Value(a); }, action);
}

}  // namespace vfio_agent
