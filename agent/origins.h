// OriginStore: on which driver each device was before its first write, kept on disk.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "iommu/release.h"

namespace vfio_agent {

// One file for each device: <dir>/devices/<address>.json, written beside it and renamed, synced
// before the first write to the kernel. A file that cannot be read is left as it is and counts
// as no record. One thread.
class OriginStore {
 public:
  // `boot_id`: /proc/sys/kernel/random/boot_id; a record of an earlier boot says nothing of a
  // device that has no driver now.
  OriginStore(std::string dir, std::string boot_id)
      : dir_(std::move(dir)), boot_id_(std::move(boot_id)) {}

  // Reads all records. NotFound never: no directory means no records. `bad`: files that are no
  // records, with the reason.
  absl::StatusOr<Origins> Read(std::vector<std::string>& bad) const;

  // Notes the present driver of `device`, unless it is a vfio driver, or there is none and this
  // boot's record tells where it came from.
  absl::Status Note(const PciDevice& device);

  // Forgets a device that is back where it came from.
  absl::Status Forget(const PciAddress& address);

 private:
  struct Record {
    Origin origin;
    std::string boot_id;
  };
  std::string PathOf(const PciAddress& address) const;
  absl::StatusOr<Record> ReadRecord(const std::string& path) const;

  std::string dir_;
  std::string boot_id_;
};

}  // namespace vfio_agent
