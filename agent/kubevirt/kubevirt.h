// What KubeVirt has to be told so that machines get what this node serves, as values and as text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/text/json.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {

// The list of a machine's devices in which one belongs. `gpus` needs no feature gate of KubeVirt,
// `hostDevices` does.
enum class MachineList { kGpus, kHostDevices };
std::string_view Name(MachineList list);

// The gate for `hostDevices`.
inline constexpr char kHostDevicesGate[] = "HostDevices";

struct ServedResource {
  std::string name;
  std::vector<std::string> selectors;  // "10DE:2330", sorted: one for each device id
  MachineList list = MachineList::kGpus;
  std::map<int, std::vector<std::string>> groups;  // the units' ids by IOMMU group
  size_t together = 1;                             // units that one machine has to ask for at once
  bool first_only = false;  // a unit is several devices, and a machine gets only its first
  // Of mediated devices, the names of their types: "GRID T4-1Q"; `selectors` is empty then.
  std::vector<std::string> mdev_types;
  size_t to_be_made = 0;  // mediated devices that are not there yet and so have no group
  // How many units one machine can have, ascending; empty: any number.
  std::vector<size_t> sizes;
  size_t Units() const;
  bool operator==(const ServedResource&) const = default;
};

struct RefusedUnit {
  std::string resource;
  std::string unit;
  std::string reason;
  bool operator==(const RefusedUnit&) const = default;
};

struct Served {
  std::vector<ServedResource> resources;  // sorted by name
  std::vector<RefusedUnit> refused;
  std::vector<std::string> to_be_made;  // virtual functions that are no units yet, a sentence each
  std::map<std::string, size_t> by_claims;  // resources with `serve: dra`, and how many units
  bool operator==(const Served&) const = default;

  const ServedResource* Find(std::string_view name) const;
  // Why the node has nothing of a resource that it would serve; "" where nothing is known of it.
  std::string WhyRefused(std::string_view name) const;
  // True where a machine would have to list something under hostDevices.
  bool NeedsGate() const;
};

// What the plan serves of the chosen groups: all units but the refused ones, whatever their state
// is at this moment.
Served FindServed(const Plan& plan, const NodeFacts& facts,
                  const std::vector<const GroupPlan*>& chosen);

// A machine down to what its domain has.
inline constexpr char kMachineHead[] =
    "apiVersion: kubevirt.io/v1\n"
    "kind: VirtualMachine\n"
    "metadata:\n"
    "  name: example\n"
    "spec:\n"
    "  template:\n"
    "    spec:\n"
    "      domain:\n";

// Two YAML documents with comments: the part of the KubeVirt resource, and the part of a machine.
// Only comments where nothing is served: an empty list would forbid what other nodes serve.
std::string KubevirtText(const Served& served);
// `vfio-agent/kubevirt/v1`. What is KubeVirt's is spelt as KubeVirt spells it.
Json KubevirtToJson(const Served& served);

// How many units of the resource one container can be given, ascending, by those of its sets of
// which no unit is refused; empty: any number.
std::vector<size_t> SizesOf(const Resource& resource);
// "2, 4 or 8".
std::string SizesText(const std::vector<size_t>& sizes);

// The text on one line of printable ASCII: for what comes from files and processes.
std::string Printable(std::string_view text);

}  // namespace vfio_agent
