// Journal: what this agent has taken, on disk, so that an agent that comes after a crash knows
// what is its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "iommu/tenancy/record.h"

namespace vfio_agent {

// One file for each device, <dir>/devices/<address>.json: one JSON object with a schema, a checksum
// and the record. Written beside its place, synced and renamed, before the write to the kernel that
// it describes. Files are untrusted: what does not check is no record. Any thread; who writes
// records of a group holds the group's lock (Jobs).
class Journal {
 public:
  // `boot_id`: /proc/sys/kernel/random/boot_id; tells Record::this_boot.
  Journal(std::string dir, std::string boot_id)
      : dir_(std::move(dir)), boot_id_(std::move(boot_id)) {}

  // A file that is no record, or one of a version to come, and why; or, not `broken`, one that
  // could not be read just now.
  struct Unreadable {
    std::string path;
    std::string why;
    bool broken = true;
  };

  // All records; no directory means none.
  absl::StatusOr<Records> Read(std::vector<Unreadable>& unreadable) const;

  // Renames `file`, which is broken, to "<name>.aside-N", so that it is kept and read no more.
  absl::Status SetAside(const Unreadable& file) const;

  // ResourceExhausted, PermissionDenied and so on: nothing has changed on disk then.
  absl::Status Write(const Record& record) const;

  // When the record of `device` was written last, by the wall clock: each step is, before it is
  // carried out. The infinite past where there is none.
  absl::Time Written(const PciAddress& device) const;

  // Removes the record of a device that is back where it came from.
  absl::Status Forget(const PciAddress& address) const;

  const std::string& boot_id() const { return boot_id_; }

 private:
  std::string PathOf(const PciAddress& address) const;

  std::string dir_;
  std::string boot_id_;
};

// The file's text, and back. DataLoss: broken; Unimplemented: another version's schema.
std::string RecordToText(const Record& record);
absl::StatusOr<Record> ParseRecord(std::string_view text);

}  // namespace vfio_agent
