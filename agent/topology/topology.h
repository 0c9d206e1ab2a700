// Topology: where the devices that matter for guests sit and how far they are from each other, as
// values. The renderings are in render.h, the guest's side in guest.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/session.h"
#include "iommu/distance/distance.h"
#include "iommu/distance/nvlink.h"

namespace vfio_agent {

enum class DeviceKind { kGpu, kNvswitch, kNic, kNvme, kOther };
std::string_view Name(DeviceKind kind);  // "gpu" …

struct TopologyDevice {
  std::string name;  // "GPU0": numbered by address within its kind
  DeviceKind kind = DeviceKind::kOther;
  PciAddress address;
  std::string id;  // "10de:2330"
  std::string model;
  std::string driver;  // empty: none
  std::optional<int> numa_node;
  std::optional<int> group;
  Verdict verdict = Verdict::kUnselected;
  bool unsafe = false;   // given away although nothing isolates it
  std::string resource;  // empty: nobody selected it
  bool module = false;   // sits on an NVLink board
  // Stays with the host: its virtual functions or mediated devices go to guests. Then `resource` is
  // empty, and `verdict` kUnselected or kRefused.
  bool host = false;
};

// A GPU and a NIC below one PCIe switch: traffic between them need not pass the processor.
struct RailPair {
  size_t gpu = 0;  // indices of devices
  size_t nic = 0;
  Distance distance = Distance::kPix;
  PciAddress below;  // the nearest port or switch that both are below
};

struct Topology {
  std::vector<TopologyDevice> devices;           // by kind, then address
  std::vector<std::vector<Distance>> distances;  // [i][j], both as in `devices`
  std::vector<RailPair> pairs;                   // for each GPU the nearest NICs
  std::vector<NvlinkBoard> boards;
  std::vector<NumaNode> numa;
};

// Without `selectors`: the GPUs, NVSwitches, network adapters and NVMe drives of the node, and what
// the configuration selects besides. With them, what of these they mean; an address may mean any
// endpoint. InvalidArgument for one that cannot be read, NotFound for one that fits nothing.
absl::StatusOr<Topology> MakeTopology(const Picture& picture, std::vector<NumaNode> numa,
                                      const std::vector<std::string>& selectors);

}  // namespace vfio_agent
