// The versions of what only this folder may include.
#pragma once

#include <string>

namespace vfio_agent {

std::string GrpcVersion();
std::string ProtobufVersion();

}  // namespace vfio_agent
