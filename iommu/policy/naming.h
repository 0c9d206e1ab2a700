// Naming: from a device's ids to the name of its resource.
#pragma once

#include <istream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "iommu/plan/plan.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

using DeviceId = std::pair<uint16_t, uint16_t>;  // vendor, device

// Reads the names of `ids` from a pci.ids file: level-1 lines inside the vendor's own block and
// no others. Ids that it lacks are absent from the result. Reads in blocks: the file is 1.4 MB
// and must not stay resident.
absl::StatusOr<ModelNames> ReadModelNames(const std::string& path, const std::set<DeviceId>& ids);

// The same from `text`, a pci.ids file's.
ModelNames ParseModelNames(std::istream& text, const std::set<DeviceId>& ids);

// Names that win over the file: accelerators that Debian's pci.ids of 2023 lacks or spells
// otherwise than the lists that NVIDIA's plugin ships, so that a name does not change with the
// file's version.
ModelNames OwnModels();

// Both together for `ids`; without a readable file our own names alone, and `error` says why.
ModelNames FindModelNames(const std::string& path, const std::set<DeviceId>& ids,
                          absl::Status& error);

// "GH100 [H100 SXM5 80GB]" -> "GH100_H100_SXM5_80GB", byte for byte as NVIDIA's plugin does it:
// upper case; '/' and '.' to '_'; each run of white space to one '_'; everything else outside
// [A-Za-z0-9_] dropped. Then only what the kubelet would reject is mended: the ends are trimmed to
// letters and digits, and the length is cut to 63.
std::string ModelResourceName(std::string_view model);

// The name of the resource that `rule` gives to `device`: its own name, or by alias or model,
// else by the device id ("nvidia.com/3182"), with the rule's suffix. A model gives way to it where
// both are too long.
std::string ResourceName(const ResourceRule& rule, const PciDevice& device, const Policy& policy,
                         const ModelNames& names);

// OK where the kubelet takes the name (IsExtendedResourceName in pkg/apis/core/v1/helper);
// InvalidArgument says which rule is broken.
absl::Status CheckResourceName(std::string_view name);

// "nvidia.com/tesla-t4" -> "PCI_RESOURCE_NVIDIA_COM_TESLA-T4": KubeVirt's rule, upper case and
// only '/' and '.' replaced (pkg/util/util.go, ResourceNameToEnvVar).
std::string ResourceVariable(std::string_view resource);

}  // namespace vfio_agent
