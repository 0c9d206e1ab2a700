// What is said of a device whose own driver does not answer. Pure.
#pragma once

#include <string>

#include "iommu/plan/planning.h"

namespace vfio_agent {

// `file`: reading it does not return. Without group and address.
Refusal WhySilent(const PciDevice& device, const std::string& file);

}  // namespace vfio_agent
