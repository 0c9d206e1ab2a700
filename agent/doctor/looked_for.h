// The modules and the commands that the doctor's checks know.
#pragma once

#include <span>
#include <string_view>

namespace vfio_agent {

std::span<const std::string_view> DoctorModules();
std::span<const std::string_view> DoctorCommands();

}  // namespace vfio_agent
