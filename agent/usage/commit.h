// The commit that a version names. Pure.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

// "0.1.0+5.g0123456789ab.dirty" names 0123456789ab, as 0.1.0+g0123456789ab does; "" for one that
// names none.
std::string CommitOf(std::string_view version);

}  // namespace vfio_agent
