// A simulated node with a group of two units and a lone one, and a kubelet that tells its pods.
#pragma once

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "test/agent/node.h"

namespace vfio_agent {

using Ids = std::vector<std::string>;  // of units

inline constexpr absl::Duration kLong = absl::Seconds(60);
inline constexpr char kA[] = "0000:17:00.0";  // two of one group
inline constexpr char kB[] = "0000:65:00.0";
inline constexpr char kLone[] = "0000:81:00.0";
inline constexpr char kBoards[] = R"(name: boards
host: {iommu_active: true, iommu: intel}
devices:
- {address: "0000:17:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: vfio-pci, iommu_group: 33}
- {address: "0000:65:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: vfio-pci, iommu_group: 33}
- {address: "0000:81:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: vfio-pci, iommu_group: 34}
)";

// What the kubelet sees, "A B lone": '+' healthy, '-' not, '.' not there.
inline std::string Health(const FakeResources& resources, const std::string& resource = kH100) {
  std::string health;
  const auto found = resources.find(resource);
  for (const char* id : {kA, kB, kLone}) {
    if (found == resources.end() || !found->second.devices.contains(id)) {
      health += '.';
    } else {
      health += found->second.devices.at(id).healthy ? '+' : '-';
    }
  }
  return health;
}

struct Boards {
  explicit Boards(FakeKubelet::Generation generation = FakeKubelet::Generation::k136)
      : kubelet(node.StartKubelet(generation)) {}

  void Start(std::vector<std::string> more = {}) {
    daemon = std::make_unique<Daemon>(node.DaemonArguments(std::move(more)));
  }
  bool Sees(const std::string& health, const std::string& resource = kH100) const {
    return kubelet->WaitFor(
        [&](const FakeResources& resources) { return Health(resources, resource) == health; },
        kLong);
  }
  absl::Status Allocate(const Ids& ids) const { return kubelet->Allocate(kH100, ids).status(); }
  // What the kubelet has written down of a pod that it need not list.
  void Checkpoint(const std::string& unit) const {
    std::ofstream(node.kubelet_dir() + "/kubelet_internal_checkpoint")
        << R"({"Data":{"PodDeviceEntries":[{"PodUID":"u-1","ContainerName":"compute",)"
        << R"("ResourceName":")" << kH100 << R"(","DeviceIDs":{"0":[")" << unit << R"("]}}]}})";
  }
  void SetPod(const Ids& ids, const std::string& resource = kH100) const {
    kubelet->SetPod("team", "vm", "compute", resource, ids);
  }

  Node node{Node::MachineText{kBoards}};
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
};

}  // namespace vfio_agent
