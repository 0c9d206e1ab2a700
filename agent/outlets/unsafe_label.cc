#include "agent/outlets/unsafe_label.h"

#include "iommu/plan/unsafe.h"

namespace vfio_agent {

std::string UnsafeLabel(const Plan& plan) {
  return OffersUnsafe(plan) ? "vfio-agent/passthrough.unsafe=true\n" : "";
}

}  // namespace vfio_agent
