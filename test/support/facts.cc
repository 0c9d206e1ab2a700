#include "test/support/facts.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace vfio_agent {
namespace {

uint16_t Hex16(const std::string& text) {
  return static_cast<uint16_t>(std::strtoul(text.c_str(), nullptr, 16));
}

Capabilities Answering() {
  return {.readable_bytes = 4096,
          .size_bytes = 4096,
          .pcie_type = Fact<PcieType>(PcieType::kEndpoint),
          .flr = Fact<bool>(true)};
}

// Catch prints a std::string with its line breaks: the two sides of a failed test stand below
// each other.
std::string Lines(const std::vector<std::string>& lines) { return absl::StrJoin(lines, "\n"); }

}  // namespace

PciDevice Endpoint(std::string_view address, int group, const std::string& driver) {
  PciDevice device{.address = At(address)};
  if (group >= 0) device.group = group;
  if (!driver.empty()) device.driver = driver;
  device.has_override = true;
  device.config = Answering();
  return device;
}

PciDevice Function(std::string_view address, int group, const std::string& driver,
                   const std::string& id, uint32_t class_code) {
  PciDevice device = Endpoint(address, group, driver);
  device.vendor = Hex16(id.substr(0, 4));
  device.device = Hex16(id.substr(5));
  device.class_code = class_code;
  return device;
}

PciDevice Gpu(std::string_view address, int group, const std::string& driver) {
  return Function(address, group, driver, "10de:2330", 0x030200);
}

PciDevice Audio(std::string_view address, int group, const std::string& driver) {
  return Function(address, group, driver, "10de:22ba", 0x040300);
}

PciDevice Nvme(std::string_view address, int group, const std::string& driver) {
  return Function(address, group, driver, "144d:a808", 0x010802);
}

PciDevice Bridge(std::string_view address, int group, const std::string& driver) {
  PciDevice device = Function(address, group, driver, "8086:2030", 0x060400);
  device.config.is_bridge = true;
  device.config.pcie_type = Fact<PcieType>(PcieType::kRootPort);
  return device;
}

PciDevice Vf(std::string_view address, int group, std::string_view physfn,
             const std::string& driver) {
  PciDevice device = Gpu(address, group, driver);
  device.physfn = At(physfn);
  return device;
}

NodeFacts Node(std::vector<PciDevice> devices) {
  NodeFacts facts{.devices = std::move(devices)};
  std::ranges::sort(facts.devices, {}, &PciDevice::address);
  facts.iommu = {.state = IommuState::kOn, .kind = IommuKind::kIntel};
  facts.modules = {.release = "6.1.0", .vfio_pci_installed = true};
  facts.drivers = {"vfio-pci"};
  facts.vfio_nodes = {"vfio"};
  for (const PciDevice& device : facts.devices) {
    if (device.driver) facts.drivers.insert(*device.driver);
    if (!device.group) continue;
    facts.groups.try_emplace(*device.group);
    if (device.driver && device.driver->find("vfio") != std::string::npos) {
      facts.vfio_nodes.insert(absl::StrFormat("%d", *device.group));
    }
  }
  return facts;
}

NodeFacts NodeWithoutIommu(std::vector<PciDevice> devices) {
  for (PciDevice& device : devices) device.group.reset();
  NodeFacts facts = Node(std::move(devices));
  facts.iommu = {.state = IommuState::kOff, .evidence = {"no PCI function has a group"}};
  return facts;
}

PciDevice& Find(NodeFacts& facts, std::string_view address) {
  const auto found = std::ranges::find(facts.devices, At(address), &PciDevice::address);
  if (found == facts.devices.end()) std::abort();
  return *found;
}

ModelNames TestNames() {
  return {{{0x10de, 0x2330}, "GH100 [H100 SXM5 80GB]"},
          {{0x10de, 0x22a3}, "GH100 [H100 NVSwitch]"},
          {{0x10de, 0x1e07}, "TU102 [GeForce RTX 2080 Ti Rev. A]"}};
}

Plan DefaultPlan(const NodeFacts& facts) { return MakePlan(facts, DefaultPolicy(), TestNames()); }

Records TakenFrom(const std::vector<std::pair<std::string, std::string>>& drivers) {
  Records records;
  for (const auto& [address, driver] : drivers) {
    records[At(address)] = {.address = At(address),
                            .boot_id = "boot",
                            .driver = driver,
                            .to = "vfio-pci",
                            .step = kStepDone,
                            .this_boot = true};
  }
  return records;
}

Custody Asked(Records records) { return {.records = std::move(records), .inquiry = Inquiry{}}; }

Plan GuardedPlan(const NodeFacts& facts, const Custody& custody) {
  return MakePlan(facts, DefaultPolicy(), TestNames(), custody);
}

std::string Shell(const std::vector<Action>& actions) {
  std::vector<std::string> lines;
  for (const Action& action : actions) lines.push_back(ToShell(action));
  return Lines(lines);
}

std::string Codes(const std::vector<Refusal>& refusals) {
  std::vector<std::string> lines;
  for (const Refusal& refusal : refusals) {
    const std::string where = refusal.address ? " " + refusal.address->ToString() : "";
    lines.push_back(std::string(CodeName(refusal.code)) + where);
  }
  return Lines(lines);
}

std::string Roles(const GroupPlan& group) {
  std::vector<std::string> lines;
  for (const Member& member : group.members) {
    lines.push_back(absl::StrFormat("%s %s %s%s", member.address.ToString(), Name(member.role),
                                    Name(member.action), member.to.empty() ? "" : " " + member.to));
  }
  return Lines(lines);
}

const GroupPlan& GroupOf(const Plan& plan, std::optional<int> group) {
  const auto found = std::ranges::find(plan.groups, group, &GroupPlan::group);
  if (found == plan.groups.end()) std::abort();
  return *found;
}

}  // namespace vfio_agent
