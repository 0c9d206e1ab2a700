// The switches of the machines that the tests of distances and of guests are about.
#pragma once

#include <vector>

#include "test/iommu/hardware.h"

namespace vfio_agent {

// Two switches in a row below one root port, the first with two functions besides; a root port
// beside it; and what there is more.
inline NodeFacts WithSwitches(const std::vector<Part>& more) {
  std::vector<Part> parts = {
      {.address = "0000:10:01.0", .type = RootPort()},
      {.address = "0000:11:00.0", .type = Upstream(), .parent = "0000:10:01.0"},
      {.address = "0000:12:00.0", .type = Downstream(), .parent = "0000:11:00.0"},
      {.address = "0000:12:01.0", .type = Downstream(), .parent = "0000:11:00.0"},
      {.address = "0000:12:02.0", .type = Downstream(), .parent = "0000:11:00.0"},
      {.address = "0000:13:00.0", .parent = "0000:12:00.0"},
      {.address = "0000:14:00.0", .parent = "0000:12:01.0"},
      {.address = "0000:15:00.0", .type = Upstream(), .parent = "0000:12:02.0"},
      {.address = "0000:16:00.0", .type = Downstream(), .parent = "0000:15:00.0"},
      {.address = "0000:16:01.0", .type = Downstream(), .parent = "0000:15:00.0"},
      {.address = "0000:17:00.0", .parent = "0000:16:00.0"},
      {.address = "0000:18:00.0", .parent = "0000:16:01.0"},
      {.address = "0000:10:02.0", .type = RootPort()},
      {.address = "0000:19:00.0", .parent = "0000:10:02.0"},
  };
  parts.insert(parts.end(), more.begin(), more.end());
  return MakeHardware(parts);
}

}  // namespace vfio_agent
