// Machines for tests of vGPUs: a T4 whose driver makes four mediated devices of one type, and an
// L40S whose four virtual functions have room for three vGPUs of one type.
#pragma once

namespace vfio_agent {

inline constexpr char kT4Host[] = "name: t4\nhost: {iommu_active: true, iommu: intel}";
inline constexpr char kT4Devices[] = R"(
devices:
- address: "0000:3b:00.0"
  vendor: "10de"
  device: "1eb8"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  mdev_types: {nvidia-222: {name: GRID T4-1Q, instances: 4}}
)";

inline constexpr char kL40sMachine[] = R"(name: l40s
host: {iommu_active: true, iommu: intel, release: 6.8.0-60-generic}
devices:
- address: "0000:41:00.0"
  vendor: "10de"
  device: "26b9"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  sriov_totalvfs: 4
  sriov_numvfs: 4
  sriov_offset: 4
  sriov_vf_driver: nvidia
  vgpu: {memory: 3, types: {1145: {name: NVIDIA L40S-1B, size: 1}}}
)";

}  // namespace vfio_agent
