#include "test/sim/machine.h"

#include <exception>
#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "test/sim/yaml.h"

namespace vfio_agent::sim {
namespace {

// Ids where the source of a topology does not tell them. A bridge then reads as QEMU's root port
// and anything else as QEMU's PCI test device: real ids, and of nobody's product.
constexpr uint16_t kUnknownVendor = 0x1b36;
constexpr uint16_t kUnknownBridge = 0x000c;
constexpr uint16_t kUnknownEndpoint = 0x0005;

constexpr char kDeviceKeys[] =
    "address vendor device subsystem_vendor subsystem_device class revision driver "
    "iommu_group numa_node parent sysfs_path is_bridge acs note inferred name "
    "bridge_secondary sriov_totalvfs sriov_numvfs sriov_offset sriov_stride "
    "sriov_vf_device sriov_vf_driver physfn driver_override reset_method power_state "
    "d3cold_allowed removable boot_vga bar1_bytes present attributes config config_size "
    "pci_bridge mdev_types vgpu";
constexpr char kTopKeys[] =
    "name source machine host provenance notes device_count devices inferred_iommu_groups "
    "groups numa_nodes processes files links absent drivers module_aliases faults";
constexpr char kHostKeys[] =
    "arch virtualisation iommu_active listing_complete iommu release cmdline noiommu "
    "cdevs vfio_pci";

// Either numbers or, as lspci's output was recorded, one flag per bit.
uint16_t AcsBits(const YAML::Node& node) {
  if (!node.IsMap()) return static_cast<uint16_t>(Hex(node));
  static const char* const kNames[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                       "UpstreamFwd", "EgressCtrl", "DirectTrans"};
  unsigned bits = 0;
  for (unsigned bit = 0; bit < std::size(kNames); ++bit) {
    if (node[kNames[bit]] && node[kNames[bit]].as<bool>()) bits |= 1u << bit;
  }
  return static_cast<uint16_t>(bits);
}

void ReadAcs(const YAML::Node& node, MachineDevice& device) {
  if (!node.IsDefined() || (node.IsScalar() && node.as<std::string>() == "none")) return;
  if (node.IsNull()) {
    device.acs = AcsFact::kUnknown;
    return;
  }
  device.acs = AcsFact::kGiven;
  device.acs_capability = AcsBits(node["cap"]);
  device.acs_control = AcsBits(node["ctl"]);
}

void ReadIdentity(const YAML::Node& node, MachineDevice& device) {
  const bool no_class = !Given(node["class"]);
  device.is_bridge =
      Given(node["is_bridge"]) ? node["is_bridge"].as<bool>() : (Hex(node["class"]) >> 8) == 0x0604;
  device.class_code = no_class ? (device.is_bridge ? 0x060400 : 0x088000) : Hex(node["class"]);
  const bool no_vendor = !Given(node["vendor"]);
  device.vendor = static_cast<uint16_t>(Hex(node["vendor"], kUnknownVendor));
  const uint32_t placeholder = device.is_bridge ? kUnknownBridge : kUnknownEndpoint;
  device.device = static_cast<uint16_t>(Hex(node["device"], no_vendor ? placeholder : 0));
  device.subsystem_vendor = static_cast<uint16_t>(Hex(node["subsystem_vendor"]));
  device.subsystem_device = static_cast<uint16_t>(Hex(node["subsystem_device"]));
  device.revision = static_cast<uint8_t>(Hex(node["revision"]));
}

void ReadConfigKind(const YAML::Node& node, MachineDevice& device) {
  const std::string kind = Text(node["config"], "whole");
  if (kind == "ones") {
    device.config = ConfigKind::kAllOnes;
  } else if (kind == "1byte") {
    device.config = ConfigKind::kOneByte;
  } else if (kind == "short") {
    device.config = ConfigKind::kHeader;
  } else if (kind != "whole") {
    throw YamlError(node["config"], "config is one of whole, short, 1byte, ones");
  }
  device.config_size = node["config_size"].as<int>(0);
}

void ReadSriov(const YAML::Node& node, MachineDevice& device) {
  device.sriov_total_vfs = node["sriov_totalvfs"].as<int>(0);
  device.sriov_num_vfs = node["sriov_numvfs"].as<int>(0);
  device.sriov_offset = node["sriov_offset"].as<int>(1);
  device.sriov_stride = node["sriov_stride"].as<int>(1);
  device.sriov_vf_device = static_cast<uint16_t>(Hex(node["sriov_vf_device"]));
  device.sriov_vf_driver = Text(node["sriov_vf_driver"]);
  device.physfn = Text(node["physfn"]);
}

void ReadBus(const YAML::Node& node, MachineDevice& device) {
  device.parent = Text(node["parent"]);
  const std::string path = Text(node["sysfs_path"]);
  device.sysfs_path = path.starts_with('/') ? path.substr(1) : path;
  device.pci_bridge = node["pci_bridge"].as<bool>(false);
  const std::string range = Text(node["bridge_secondary"]);  // "01-01"
  if (range.size() == 5 && range[2] == '-') {
    device.secondary = std::stoi(range.substr(0, 2), nullptr, 16);
    device.subordinate = std::stoi(range.substr(3, 2), nullptr, 16);
  } else if (!range.empty()) {
    throw YamlError(node["bridge_secondary"], "want two bus numbers: '01-0f'");
  }
}

void ReadVgpu(const YAML::Node& node, MachineDevice& device) {
  if (!Given(node)) return;
  OnlyKeys(node, "memory types");
  device.vgpu_memory = node["memory"].as<int>(0);
  for (const auto& item : node["types"]) {
    OnlyKeys(item.second, "name size");
    device.vgpu_types[item.first.as<int>()] = {.name = Text(item.second["name"]),
                                               .size = item.second["size"].as<int>(1)};
  }
}

MachineDevice ReadDevice(const YAML::Node& node) {
  OnlyKeys(node, kDeviceKeys);
  MachineDevice device;
  device.address = node["address"].as<std::string>();
  ReadIdentity(node, device);
  ReadBus(node, device);
  ReadAcs(node["acs"], device);
  ReadConfigKind(node, device);
  ReadSriov(node, device);
  device.driver = Text(node["driver"]);
  if (node["driver_override"]) device.driver_override = Text(node["driver_override"]);
  if (Given(node["iommu_group"])) device.group = node["iommu_group"].as<int>();
  if (Given(node["numa_node"])) device.numa_node = node["numa_node"].as<int>();
  if (Given(node["reset_method"])) device.reset_method = Text(node["reset_method"]);
  device.power_state = Text(node["power_state"], "D0");
  device.d3cold_allowed = Text(node["d3cold_allowed"], "1");
  device.removable = Text(node["removable"]);
  if (Given(node["boot_vga"])) device.boot_vga = node["boot_vga"].as<bool>();
  device.bar1_bytes = node["bar1_bytes"].as<uint64_t>(0);
  device.present = node["present"].as<bool>(true);
  device.attributes = TextMap(node["attributes"]);
  ReadVgpu(node["vgpu"], device);
  if (Given(node["mdev_types"])) {
    for (const auto& item : node["mdev_types"]) {
      OnlyKeys(item.second, "name api instances");
      device.mdev_types[item.first.as<std::string>()] = {
          .name = Text(item.second["name"]),
          .api = Text(item.second["api"], "vfio-pci"),
          .instances = item.second["instances"].as<int>(0)};
    }
  }
  return device;
}

// The IOMMU's maker, where the file only says that one is active.
std::string GuessIommu(const YAML::Node& host, const Machine& machine) {
  bool active = Given(host["iommu_active"]) && host["iommu_active"].as<bool>();
  uint16_t first_vendor = 0;
  for (const MachineDevice& device : machine.devices) {
    if (first_vendor == 0) first_vendor = device.vendor;
    if (device.group && !Given(host["iommu_active"])) active = true;
  }
  // "iommu_active: null" of a recording: its source does not say.
  if (!active) return host["iommu_active"] && host["iommu_active"].IsNull() ? "unknown" : "none";
  if (Text(host["arch"]).starts_with("aarch64")) return "arm-smmu";
  return first_vendor == 0x1022 ? "amd" : "intel";
}

void ReadHost(const YAML::Node& host, Machine& machine) {
  OnlyKeys(host, kHostKeys);
  machine.iommu = Given(host["iommu"]) ? Text(host["iommu"]) : GuessIommu(host, machine);
  machine.release = Text(host["release"], machine.release);
  machine.command_line = Text(host["cmdline"], "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet");
  if (!host["cmdline"] && machine.iommu == "intel") machine.command_line += " intel_iommu=on";
  machine.noiommu = Text(host["noiommu"]);
  machine.virtual_machine = Text(host["virtualisation"], "none") != "none";
  machine.vfio_pci = Text(host["vfio_pci"], machine.vfio_pci);
  const std::string cdevs = Text(host["cdevs"], "sysfs");
  if (cdevs != "none" && cdevs != "sysfs" && cdevs != "full") {
    throw YamlError(host["cdevs"], "cdevs is one of none, sysfs, full");
  }
  machine.cdevs = cdevs == "none"    ? Cdevs::kNone
                  : cdevs == "sysfs" ? Cdevs::kSysfsOnly
                                     : Cdevs::kFull;
}

void ReadGroups(const YAML::Node& node, Machine& machine) {
  if (!Given(node)) return;
  for (const auto& item : node) {
    MachineGroup& group = machine.groups[item.first.as<int>()];
    OnlyKeys(item.second, "name type reserved");
    group.name = Text(item.second["name"]);
    group.type = Text(item.second["type"], group.type);
    group.reserved = Texts(item.second["reserved"]);
  }
}

void ReadNumaNodes(const YAML::Node& node, Machine& machine) {
  if (Given(node)) {
    for (const auto& item : node) {
      OnlyKeys(item.second, "cpulist distance");
      machine.numa_nodes[item.first.as<int>()] = {.cpulist = Text(item.second["cpulist"]),
                                                  .distance = Text(item.second["distance"])};
    }
    return;
  }
  int last = 0;
  for (const MachineDevice& device : machine.devices) last = std::max(last, device.numa_node);
  for (int number = 0; number <= last; ++number) {
    std::string distance;
    for (int other = 0; other <= last; ++other) distance += other == number ? "10 " : "21 ";
    distance.pop_back();
    machine.numa_nodes[number] = {
        .cpulist = absl::StrFormat("%d-%d", number * 16, number * 16 + 15), .distance = distance};
  }
}

Machine ReadMachine(const YAML::Node& root) {
  OnlyKeys(root, kTopKeys);
  Machine machine;
  machine.name = Text(root["name"]);
  for (const YAML::Node& node : root["devices"]) machine.devices.push_back(ReadDevice(node));
  ReadHost(Given(root["host"]) ? root["host"] : YAML::Load("{}"), machine);
  ReadGroups(root["groups"], machine);
  ReadNumaNodes(root["numa_nodes"], machine);
  if (Given(root["processes"])) {
    for (const YAML::Node& node : root["processes"]) {
      OnlyKeys(node, "pid comm cgroup fds");
      machine.processes.push_back({.pid = node["pid"].as<int>(),
                                   .comm = Text(node["comm"]),
                                   .cgroup = Text(node["cgroup"], "0::/\n"),
                                   .fds = Texts(node["fds"])});
    }
  }
  for (const YAML::Node& node : root["faults"]) machine.faults.push_back(ReadFault(node));
  machine.drivers = Texts(root["drivers"]);
  machine.module_aliases = Texts(root["module_aliases"]);
  machine.files = TextMap(root["files"]);
  machine.links = TextMap(root["links"]);
  machine.absent = Texts(root["absent"]);
  return machine;
}

absl::Status CheckParents(const Machine& machine) {
  std::map<std::string, std::string> parents;
  for (const MachineDevice& device : machine.devices) {
    if (!parents.insert({device.address, device.parent}).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s is listed twice", machine.name, device.address));
    }
  }
  for (const MachineDevice& device : machine.devices) {
    size_t steps = 0;
    for (auto at = parents.find(device.parent); at != parents.end();
         at = parents.find(at->second)) {
      if (++steps <= parents.size()) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s is below itself", machine.name, device.address));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Machine> ParseMachine(const std::string& yaml, const std::string& name) {
  try {
    Machine machine = ReadMachine(YAML::Load(yaml));
    if (machine.name.empty()) machine.name = name;
    if (const absl::Status status = CheckParents(machine); !status.ok()) return status;
    return machine;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s", name, error.what()));
  }
}

absl::StatusOr<Machine> LoadMachine(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrFormat("machine file %s cannot be read", path));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return ParseMachine(text, path);
}

}  // namespace vfio_agent::sim
