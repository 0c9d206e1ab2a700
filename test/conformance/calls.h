// Calls on a plugin, bare: what no kubelet asks can be asked, too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "test/conformance/stand.h"

namespace vfio_agent::conformance {

using Ids = std::vector<std::string>;

// One call, with one request for each element.
absl::StatusOr<v1beta1::AllocateResponse> Allocate(Stand& stand,
                                                   const std::vector<Ids>& containers);
// For one container; an error, too, where the answer is not for one container.
absl::StatusOr<v1beta1::ContainerAllocateResponse> AllocateOne(Stand& stand, const Ids& ids);
absl::StatusOr<Ids> Preferred(Stand& stand, const Ids& available, const Ids& must, size_t size);
absl::Status PreStart(Stand& stand, const Ids& ids);
// What GetDevicePluginOptions says.
absl::StatusOr<v1beta1::DevicePluginOptions> OptionsOf(Stand& stand);

// Equal answers have equal texts, whatever the order of the variables.
std::string Text(const v1beta1::ContainerAllocateResponse& answer);

}  // namespace vfio_agent::conformance
