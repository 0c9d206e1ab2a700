// Snapshot: what was read of a node, without what is private, as the files of one archive.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/snapshot/recording.h"
#include "agent/text/json.h"

namespace vfio_agent {

inline constexpr char kAboutFile[] = "vfio-agent-snapshot.json";

// In a line of what is unfinished: a path is behind it.
inline constexpr char kGivenUpAfter[] = ": given up after ";

// What else goes in: texts by path, as if they had been read there.
using Additions = std::map<std::string, std::string>;

struct MaskCount {
  std::string what;
  size_t files = 0;
};

struct Snapshot {
  std::map<std::string, Item> items;  // kAboutFile and kReplayFile among them
  Json about;                         // vfio-agent/snapshot/v1
  std::vector<MaskCount> masked;      // what was changed, and in how many files
};

// `unfinished`: facts that could not be taken, one line each. Of the same recording always the
// same, whenever and wherever it is made.
Snapshot MakeSnapshot(Recording recording, const Additions& additions,
                      const std::vector<std::string>& unfinished);

}  // namespace vfio_agent
