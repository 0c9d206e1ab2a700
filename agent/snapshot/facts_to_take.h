// FactsToTake: everything that the program reads of a node, so that a snapshot has it.
#pragma once

#include <span>

#include "absl/time/time.h"

namespace vfio_agent {

class Tree;

// `take` reads as the commands do; what it makes of it is of no interest. It runs in a child of its
// own, for which a read that does not return within `patience` is given up.
struct FactToTake {
  const char* name;
  void (*take)(const Tree& tree);
  absl::Duration patience;
};

// A reader that a command calls has its row here, else its facts are missing in bug reports.
std::span<const FactToTake> FactsToTake();

}  // namespace vfio_agent
