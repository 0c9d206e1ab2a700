// Facts built by hand, in domain words: what the pure rules of iommu/ are fed in tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iommu/plan/plan.h"
#include "iommu/plan/release.h"
#include "sysfs/node_facts.h"

namespace vfio_agent {

inline PciAddress At(std::string_view text) { return *PciAddress::Parse(text); }

// Every builder gives an endpoint that answers, has a driver_override and no place in the tree.
// `group` -1: no IOMMU group; `driver` "": none bound.
PciDevice Endpoint(std::string_view address, int group, const std::string& driver = "");
// With ids as lspci prints them, "10de:2330", and a 24-bit class.
PciDevice Function(std::string_view address, int group, const std::string& driver,
                   const std::string& id, uint32_t class_code);
PciDevice Gpu(std::string_view address, int group, const std::string& driver = "nvidia");
PciDevice Audio(std::string_view address, int group, const std::string& driver = "snd_hda_intel");
PciDevice Nvme(std::string_view address, int group, const std::string& driver = "nvme");
PciDevice Bridge(std::string_view address, int group, const std::string& driver = "pcieport");
PciDevice Vf(std::string_view address, int group, std::string_view physfn,
             const std::string& driver = "nvidia");

// A node with an IOMMU that is on: sorted devices, their groups and drivers; vfio-pci is loaded
// and installed; each group with a member on a vfio driver has its node.
NodeFacts Node(std::vector<PciDevice> devices);
// The same where no IOMMU is on: no device has a group.
NodeFacts NodeWithoutIommu(std::vector<PciDevice> devices);
PciDevice& Find(NodeFacts& facts, std::string_view address);

// The model names that these tests need, as pci.ids has them.
ModelNames TestNames();
// The built-in policy over TestNames().
Plan DefaultPlan(const NodeFacts& facts);

// The journal of this boot: each device was taken from that driver ("" = none), and is done with.
Records TakenFrom(const std::vector<std::pair<std::string, std::string>>& drivers);
// What an inquiry found: those records, nothing in use.
Custody Asked(Records records = {});
// The built-in policy with an inquiry that was answered.
Plan GuardedPlan(const NodeFacts& facts, const Custody& custody);

// One line for each: what a failing test should print.
std::string Shell(const std::vector<Action>& actions);    // the commands
std::string Codes(const std::vector<Refusal>& refusals);  // "held 0000:3b:00.0"
std::string Roles(const GroupPlan& group);                // "0000:3b:00.0 primary bind"
const GroupPlan& GroupOf(const Plan& plan, std::optional<int> group);

}  // namespace vfio_agent
