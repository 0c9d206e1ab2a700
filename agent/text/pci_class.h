// The words that lspci uses for the PCI classes that matter here.
#pragma once

#include <cstdint>
#include <string_view>

namespace vfio_agent {

// "3D controller" for 0x030200; "Class" for what the table lacks.
std::string_view ClassWords(uint32_t class_code);

}  // namespace vfio_agent
