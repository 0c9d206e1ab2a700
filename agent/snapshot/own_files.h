// OwnFiles: configuration, journal and model names of a snapshot, as files of ours.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vfio_agent {

// Names below the place of the copies.
inline constexpr char kOwnConfigFile[] = "/config.yaml";
inline constexpr char kOwnStateDir[] = "/state";
inline constexpr char kOwnPciIds[] = "/pci.ids";

// Copies what the snapshot below `root` has of them to `place`, an empty directory of ours. A
// snapshot comes from somewhere else: it is read without leaving `root` by any link, what is
// written later lands in the copies, and of the configuration the policy alone is taken, for its
// settings name places of this machine. Says what was left out, a sentence each. InvalidArgument:
// the configuration.
absl::StatusOr<std::vector<std::string>> CopyOwnFiles(const std::string& root,
                                                      const std::string& place);

}  // namespace vfio_agent
