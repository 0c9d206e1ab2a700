// Who has what, whether anything offers it now or not. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/session.h"

namespace vfio_agent {

// Pods and ResourceClaims that have `device`, by itself or as a part of a unit, each once: "pod
// team/vm (container compute), as nvidia.com/X".
std::vector<std::string> WhoHas(const Picture& picture, const PciAddress& device);
std::vector<std::string> WhoHasMdev(const Picture& picture, const std::string& uuid);

// What ResourceClaims have that is no unit any more, since the configuration was changed: a
// sentence for each.
std::vector<std::string> TellHeldWithoutOffer(const Picture& picture);

}  // namespace vfio_agent
