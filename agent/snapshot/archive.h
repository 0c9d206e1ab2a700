// Archive: files as a tar.gz, and back. The only user of libarchive.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/snapshot/recording.h"

namespace vfio_agent {

// The same items give the same bytes: sorted, of nobody, of no time.
absl::StatusOr<std::string> PackItems(const std::map<std::string, Item>& items);

// What an archive may have at most. It comes with a bug report: it is anybody's.
struct ArchiveLimits {
  size_t entries = 400'000;
  size_t file_bytes = size_t{64} << 20;
  size_t total_bytes = size_t{512} << 20;
};

// Unpacks the tar or tar.gz at `path` below `directory`, which is there and empty. InvalidArgument
// where it has anything but plain files, directories and links (whose targets are not looked at:
// a Tree does not follow them out of its root), a name that leads out, through a link or stands
// there twice; ResourceExhausted beyond the limits.
absl::Status UnpackArchive(const std::string& path, const std::string& directory,
                           const ArchiveLimits& limits = {});

}  // namespace vfio_agent
