#include "agent/snapshot/facts_to_take.h"

#include <array>

#include "agent/config/settings.h"
#include "agent/doctor/facts.h"
#include "agent/doctor/kubelet_facts.h"
#include "agent/doctor/looked_for.h"
#include "sysfs/device/config_space.h"
#include "sysfs/device/numa.h"
#include "sysfs/host/module_facts.h"
#include "sysfs/node_facts.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"
#include "sysfs/use/use.h"

namespace vfio_agent {
namespace {

NodeFacts Facts(const Tree& tree) {
  ConfigReader config(tree);
  absl::StatusOr<NodeFacts> facts = TakeNodeFacts(tree, config, ReadModuleFacts(tree));
  // The error is in the record as well, and the replay's own answer.
  return facts.ok() ? *std::move(facts) : NodeFacts();
}

void TakeNode(const Tree& tree) { Facts(tree); }

// The kernel lets a group be opened once, which tells of processes that cannot be seen. Opening
// one, if only for a moment, could keep a guest from it: only where it must be.
void TryGroups(const Tree& tree, const NodeFacts& facts) {
  for (const PciDevice& device : facts.devices) {
    const bool given = device.driver && device.driver->find("vfio") != std::string::npos;
    if (given && device.group) IsGroupOpen(tree, *device.group);
  }
}

// As if every group were to be bound or released.
void TakeUse(const Tree& tree) {
  const NodeFacts facts = Facts(tree);
  std::vector<PciAddress> devices;
  for (const PciDevice& device : facts.devices) devices.push_back(device.address);
  std::vector<int> groups;
  for (const auto& [group, unused] : facts.groups) groups.push_back(group);
  const UseFacts use = ReadUse(tree, facts, devices, groups);
  if (!use.processes_known) TryGroups(tree, facts);
}

// Each waits for its device's lock.
void TakeOverrides(const Tree& tree) {
  const absl::StatusOr<std::vector<std::string>> names = tree.List(kDevicesDir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const absl::StatusOr<PciAddress> address = PciAddress::Parse(name);
    if (address.ok()) tree.ReadText(OverridePath(*address)).IgnoreError();
  }
}

// What `doctor` and `topology` ask besides. Nothing is asked of sockets: files alone are taken.
void TakeHost(const Tree& tree) {
  ReadFirmwareFacts(tree);
  ReadMemoryFacts(tree);
  ReadNumaNodes(tree);
  const absl::StatusOr<std::string> line = tree.ReadText(kCommandLine, size_t{64} * 1024);
  ReadHostModules(tree, &tree, line.ok() ? *line : "", DoctorModules());
  Settings settings;
  settings.device_plugin_dir = kDefaultDevicePluginDir;
  settings.kubelet_root_dir = kDefaultKubeletRootDir;
  ReadKubeletFacts(
      {.proc = &tree, .files = &tree, .plugins = &tree, .files_live = false, .plugins_live = false},
      ReadHostProcesses(tree, DoctorCommands()), settings);
}

void TakeBoot(const Tree& tree) { tree.ReadText(kBootId).IgnoreError(); }

constexpr std::array kFacts = std::to_array<FactToTake>({
    {"devices and groups", TakeNode, absl::Seconds(5)},
    {"who uses what", TakeUse, absl::Seconds(5)},
    {"driver overrides", TakeOverrides, absl::Milliseconds(500)},
    {"machine and kubelet", TakeHost, absl::Seconds(5)},
    {"boot", TakeBoot, absl::Seconds(5)},
});

}  // namespace

std::span<const FactToTake> FactsToTake() { return kFacts; }

}  // namespace vfio_agent
