// Which pods the kubelet's own checkpoint names for units. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iommu/tenancy/claims.h"

namespace vfio_agent {

// The file's name in the device-plugin directory, and how long it may be.
inline constexpr char kKubeletCheckpoint[] = "kubelet_internal_checkpoint";
inline constexpr size_t kLargestCheckpoint = size_t{16} << 20;

// The uid of the pod that has `unit` of `resource`, by the checkpoint's text; "" where there is
// none, there are two, or the text is not understood: what a container of an ended pod had stays in
// it for a while.
std::string PodUidOf(std::string_view checkpoint, const std::string& container,
                     const std::string& resource, const std::string& unit);

// All that the checkpoint has containers down for, by the uids of their pods; sorted. nullopt for a
// text that is not understood. A pod that has ended may stand in it for a while.
std::optional<std::vector<PodClaim>> CheckpointClaims(std::string_view checkpoint);

}  // namespace vfio_agent
