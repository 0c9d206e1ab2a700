// One HTTP request to this machine, as a probe makes it.
#pragma once

#include <string>

#include "sysfs/fd.h"

namespace vfio_agent {

struct HttpAnswer {
  int code = 0;  // 0: nobody answered
  std::string body;
};

// Connects and says nothing.
Fd ConnectTo(int port);

HttpAnswer HttpGet(int port, const std::string& path, const std::string& method = "GET");

}  // namespace vfio_agent
