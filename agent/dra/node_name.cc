#include "agent/dra/node_name.h"

#include <sys/utsname.h>

#include <cstdlib>

namespace vfio_agent {

std::string NodeName() {
  const char* const name = std::getenv("NODE_NAME");  // NOLINT(concurrency-mt-unsafe)
  if (name != nullptr && *name != '\0') return name;
  struct utsname host = {};
  return ::uname(&host) == 0 ? host.nodename : "";
}

}  // namespace vfio_agent
