// TakeRecording: reads all facts of a node that may not be well.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/snapshot/facts_to_take.h"
#include "agent/snapshot/recording.h"

namespace vfio_agent {

struct Taken {
  Recording recording;
  std::vector<std::string> unfinished;  // facts that were given up, and why, one line each
};

// Called with what is read at the moment, many times a second.
using Progress = std::function<void(const std::string& what)>;

// A child for each fact, for a read of a sick node need not return: such a one is noted as a
// failure (ETIMEDOUT), and the fact is read again without it. Not for a process that uses gRPC.
absl::StatusOr<Taken> TakeRecording(const Tree& tree, std::span<const FactToTake> facts,
                                    const Progress& progress);

}  // namespace vfio_agent
