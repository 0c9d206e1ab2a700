// The labels of NFD's feature file, as the Node is to have them. Pure.
#pragma once

#include <string_view>

#include "agent/mode/mode_wish.h"

namespace vfio_agent {

// `lines`: NfdLabels::text. A value that no label may have is left out.
NodeLabels NodeLabelsOf(std::string_view lines);

}  // namespace vfio_agent
