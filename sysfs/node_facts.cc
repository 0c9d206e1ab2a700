#include "sysfs/node_facts.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "sysfs/device/config_space.h"
#include "sysfs/device/numa.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/use/display_use.h"

namespace vfio_agent {
namespace {

absl::Status ReadDevices(const Tree& tree, ConfigReader& config, NodeFacts& facts) {
  absl::StatusOr<std::vector<std::string>> names = tree.List(kDevicesDir);
  if (!names.ok()) {
    return absl::FailedPreconditionError(absl::StrFormat("no PCI devices to read below %s: %s",
                                                         tree.root(), names.status().message()));
  }
  facts.devices.reserve(names->size());
  for (const std::string& name : *names) {
    const absl::StatusOr<PciAddress> address = PciAddress::Parse(name);
    if (!address.ok()) {
      facts.skipped.push_back(
          absl::StrFormat("%s/%s: %s", kDevicesDir, name, address.status().message()));
      continue;
    }
    absl::StatusOr<PciDevice> device = ReadPciDevice(tree, config, *address);
    if (device.ok()) {
      facts.devices.push_back(*std::move(device));
    } else {
      facts.skipped.push_back(Message(device.status()));
    }
  }
  std::ranges::sort(facts.devices, {}, &PciDevice::address);
  return absl::OkStatus();
}

// "0x00000000000a0000 0x00000000000bffff direct": a region that the firmware keeps for itself.
bool HasDirectRegion(const std::string& text) {
  for (size_t at = text.find(" direct"); at != std::string::npos;
       at = text.find(" direct", at + 1)) {
    const size_t end = at + std::string_view(" direct").size();
    // "direct-relaxable" regions (USB, graphics stolen memory) hinder nobody.
    if (end == text.size() || text[end] == '\n') return true;
  }
  return false;
}

GroupFacts ReadGroup(const Tree& tree, int group) {
  GroupFacts facts;
  const absl::StatusOr<std::string> name = tree.ReadText(GroupFile(group, "name"));
  facts.noiommu = name.ok() && *name == "vfio-noiommu";
  const absl::StatusOr<std::string> regions = tree.ReadText(GroupFile(group, "reserved_regions"));
  facts.direct_reserved = regions.ok() && HasDirectRegion(*regions);
  const absl::StatusOr<std::vector<std::string>> devices = tree.List(GroupFile(group, "devices"));
  for (const std::string& device : devices.ok() ? *devices : std::vector<std::string>()) {
    if (const auto address = PciAddress::Parse(device); address.ok()) {
      facts.listed.push_back(*address);
    }
  }
  return facts;
}

std::set<std::string> ListSet(const Tree& tree, std::string_view path) {
  const absl::StatusOr<std::vector<std::string>> names = tree.List(path);
  if (!names.ok()) return {};
  return {names->begin(), names->end()};
}

std::set<std::string> ReadVfioNodes(const Tree& tree) {
  std::set<std::string> nodes = ListSet(tree, kVfioNodesDir);
  if (nodes.erase("devices") == 0) return nodes;
  for (const std::string& name : ListSet(tree, std::string(kVfioNodesDir) + "/devices")) {
    nodes.insert("devices/" + name);
  }
  return nodes;
}

// One look at proc/iomem, and at the regions of display adapters only if there is a claim at all.
std::map<PciAddress, FrameBuffer> ReadFrameBuffers(const Tree& tree,
                                                   const std::vector<PciDevice>& devices) {
  constexpr uint8_t kDisplay = 0x03;
  std::map<PciAddress, FrameBuffer> found;
  const std::vector<MemoryClaim> claims = ReadMemoryClaims(tree);
  if (claims.empty()) return found;
  for (const PciDevice& device : devices) {
    if (device.class_code >> 16 != kDisplay) continue;
    const std::vector<Use> uses = ClaimUses(tree, device.address, claims);
    if (!uses.empty()) found[device.address] = {uses.front().text, uses.front().remedy};
  }
  return found;
}

// One file for an ordinary node, more only where one has no processors.
std::map<int, int> ReadNearestNodes(const Tree& tree, const std::vector<PciDevice>& devices) {
  std::set<int> used;
  for (const PciDevice& device : devices) {
    if (device.numa_node) used.insert(*device.numa_node);
  }
  std::map<int, int> nearest;
  for (const int node : used) {
    if (const std::optional<int> other = NearestCpuNode(tree, node)) nearest[node] = *other;
  }
  return nearest;
}

// Slices of devices: mediated devices and vGPUs.
void ReadShares(const Tree& tree, const AskDrivers& ask, NodeFacts& facts) {
  facts.mdev = ListMdevs(tree);
  facts.vgpu = ListVgpus(tree, facts.devices);
  std::vector<DriverFile> files;
  AddMdevFiles(facts.mdev, facts.devices, files);
  AddVgpuFiles(facts.vgpu, files);
  if (!files.empty()) {
    const DriverTexts texts = ask(files);
    FillMdevs(texts, facts.mdev);
    FillVgpus(texts, facts.vgpu);
  }
  for (std::vector<std::string>* const skipped : {&facts.mdev.skipped, &facts.vgpu.skipped}) {
    std::ranges::move(*skipped, std::back_inserter(facts.skipped));
    skipped->clear();
  }
}

}  // namespace

absl::StatusOr<NodeFacts> TakeNodeFacts(const Tree& tree, ConfigReader& config,
                                        const ModuleFacts& modules, const AskDrivers& ask) {
  NodeFacts facts{.modules = modules};
  RETURN_IF_ERROR(ReadDevices(tree, config, facts));
  int grouped = 0;
  for (const PciDevice& device : facts.devices) {
    if (!device.group) continue;
    const auto [entry, fresh] = facts.groups.try_emplace(*device.group);
    if (fresh) entry->second = ReadGroup(tree, *device.group);
    if (!entry->second.noiommu) ++grouped;
  }
  const auto noiommu =
      std::ranges::count_if(facts.groups, [](const auto& entry) { return entry.second.noiommu; });
  facts.iommu = ReadIommuFacts(tree, grouped, static_cast<int>(noiommu));
  facts.drivers = ListSet(tree, kDriversDir);
  facts.vfio_nodes = ReadVfioNodes(tree);
  facts.iommu_node = tree.Exists(kIommuNode);
  ReadShares(tree, ask ? ask : AskInTurn(tree), facts);
  facts.frame_buffers = ReadFrameBuffers(tree, facts.devices);
  facts.nearest_cpu_nodes = ReadNearestNodes(tree, facts.devices);
  facts.egm = ReadEgmRegions(tree);
  return facts;
}

const PciDevice* FindDevice(const NodeFacts& facts, const PciAddress& address) {
  const auto found = std::ranges::lower_bound(facts.devices, address, {}, &PciDevice::address);
  return found != facts.devices.end() && found->address == address ? &*found : nullptr;
}

}  // namespace vfio_agent
