// Which pod the kubelet's own checkpoint names for a unit. Pure.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

// The file's name in the device-plugin directory.
inline constexpr char kKubeletCheckpoint[] = "kubelet_internal_checkpoint";

// The uid of the pod that has `unit` of `resource`, by the checkpoint's text; "" where there is
// none, there are two, or the text is not understood: what a container of an ended pod had stays in
// it for a while.
std::string PodUidOf(std::string_view checkpoint, const std::string& container,
                     const std::string& resource, const std::string& unit);

}  // namespace vfio_agent
