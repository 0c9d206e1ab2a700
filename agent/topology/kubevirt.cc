#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/kubevirt/kubevirt.h"
#include "agent/topology/guest.h"
#include "agent/usage/help_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kColumns = 98;  // behind "# "

std::string HeadText(const std::vector<std::string>& notes) {
  std::string text =
      "# What KubeVirt can express of it: cells as on the host, and each device in its cell where\n"
      "# the feature gate PCINUMAAwareTopology (alpha) is on: one pcie-expander-bus for each "
      "cell.\n"
      "# Without that gate all devices are below the machine's own root, in no cell.\n"
      "# guestMappingPassthrough needs dedicatedCpuPlacement and hugepages; with the gate the "
      "machine\n"
      "# does not start where a device's NUMA node is not told or has none of its processors.\n";
  for (const std::string& note : notes) {
    for (const std::string& line : Wrap(Printable(note), kColumns)) text += "# " + line + "\n";
  }
  return text;
}

// What KubeVirt cannot express.
std::string LimitsText(const Topology& topology, const std::vector<PciAddress>& devices) {
  std::vector<std::string> pairs;
  const auto given = [&devices](const TopologyDevice& device) {
    return std::ranges::count(devices, device.address) > 0;
  };
  for (size_t i = 0; i < topology.devices.size(); ++i) {
    for (size_t j = i + 1; j < topology.devices.size(); ++j) {
      const Distance distance = topology.distances[i][j];
      if (distance > Distance::kPxb || !given(topology.devices[i]) || !given(topology.devices[j]) ||
          SameSlot(topology.devices[i].address, topology.devices[j].address)) {
        continue;
      }
      pairs.push_back(absl::StrFormat("%s-%s %s", topology.devices[i].name,
                                      topology.devices[j].name, Name(distance)));
    }
  }
  if (pairs.empty()) return "";
  return absl::StrFormat(
      "# Not possible: virtual PCIe switches. Each device gets a root port of its own, so these "
      "are PHB\n"
      "# in the guest: %s.\n"
      "# NCCL there uses GPUDirect RDMA up to PXB unless it is told: NCCL_NET_GDR_LEVEL=PHB.\n"
      "# Switches need a hook sidecar (onDefineDomain) that puts in what `topology --guest "
      "libvirt\n"
      "# ADDRESS...` prints for the addresses that the machine has got.\n"
      "# Which units a machine gets is the kubelet's choice. For a GPU and the NIC of its switch, "
      "make\n"
      "# one resource for each switch: `resources:` with `select: [{address: ...}]`.\n",
      absl::StrJoin(pairs, ", "));
}

std::string ListText(const std::map<std::string, int>& counts, const char* list, const char* word) {
  std::string text;
  int number = 0;
  for (const auto& [resource, count] : counts) {
    for (int i = 0; i < count; ++i) {
      text += absl::StrFormat("            - name: %s%d\n              deviceName: %s\n", word,
                              ++number, resource);
    }
  }
  return text.empty() ? text : absl::StrFormat("          %s:\n%s", list, text);
}

}  // namespace

std::string KubevirtLayoutText(const Topology& topology, const Plan& plan, const NodeFacts& facts,
                               const std::vector<PciAddress>& devices) {
  std::vector<const GroupPlan*> groups;
  for (const GroupPlan& group : plan.groups) groups.push_back(&group);
  const Served served = FindServed(plan, facts, groups);
  std::map<std::string, int> gpus, others;
  for (const TopologyDevice& device : topology.devices) {
    if (std::ranges::count(devices, device.address) == 0) continue;
    const ServedResource* const resource = served.Find(device.resource);
    if (resource == nullptr || device.verdict == Verdict::kRefused) continue;
    ++(resource->list == MachineList::kGpus ? gpus : others)[resource->name];
  }
  std::string text = HeadText(GuestNotes(topology, devices)) + LimitsText(topology, devices);
  if (gpus.empty() && others.empty()) {
    return text + "# This node serves none of these devices: no machine can ask for them.\n";
  }
  text += kMachineHead;
  text +=
      "        cpu:\n"
      "          cores: 16  # an example, as is the memory\n"
      "          dedicatedCpuPlacement: true\n"
      "          numa:\n"
      "            guestMappingPassthrough: {}\n"
      "        memory:\n"
      "          guest: 64Gi\n"
      "          hugepages:\n"
      "            pageSize: 1Gi\n"
      "        devices:\n";
  return text + ListText(gpus, "gpus", "gpu") + ListText(others, "hostDevices", "device");
}

}  // namespace vfio_agent
