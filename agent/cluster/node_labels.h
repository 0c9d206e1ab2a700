// The labels of NFD's feature file, as the Node is to have them. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace vfio_agent {

using NodeLabels = std::map<std::string, std::string>;

// `lines`: NfdLabels::text. A value that no label may have is left out.
NodeLabels NodeLabelsOf(std::string_view lines);

}  // namespace vfio_agent
