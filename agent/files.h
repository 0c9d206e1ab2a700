// Small helpers for the agent's own files.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vfio_agent {

// Makes `path` with the directories above it, by default for root only. OK where it is there
// already.
absl::Status MakeDirectories(const std::string& path, mode_t mode = 0700);

// The first `limit` bytes of a file. Follows no link in the last step.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t limit = 65536);

// Gives `path` the content `text`, wholly or not at all, and on the disk when it returns: a file
// beside it is written, synced and renamed. Whoever reads the directory meanwhile must skip that
// file: `fresh_name`, or what ends in ".new".
absl::Status ReplaceFile(const std::string& path, const std::string& text, mode_t mode = 0600,
                         const std::string& fresh_name = "");

// OK where there is none. No link is followed and none is removed, nor is anything else that is
// no regular file: it can be none of ours.
absl::Status RemoveRegularFile(const std::string& path);

absl::Status SyncDirectory(const std::string& path);

}  // namespace vfio_agent
