#include "agent/work/journal.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kSuffix[] = ".json";
constexpr int kMostAside = 1000;

// The file's name is the address that it speaks of: a copy under another name is no record.
absl::StatusOr<Record> ReadRecord(const std::string& dir, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(dir + "/" + name));
  ASSIGN_OR_RETURN(Record record, ParseRecord(text));
  if (record.address.ToString() + kSuffix == name) return record;
  return absl::DataLossError(absl::StrFormat("speaks of %s", record.address.ToString()));
}

}  // namespace

std::string Journal::PathOf(const PciAddress& address) const {
  return absl::StrFormat("%s/devices/%s%s", dir_, address.ToString(), kSuffix);
}

absl::StatusOr<Records> Journal::Read(std::vector<Unreadable>& unreadable) const {
  const std::string path = dir_ + "/devices";
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (dir == nullptr) {
    if (errno == ENOENT) return Records();
    return ErrnoStatus(absl::StrFormat("open %s", path));
  }
  Records records;
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    absl::StatusOr<Record> record = ReadRecord(path, name);
    if (absl::IsNotFound(record.status())) continue;  // a device that was just given back
    if (!record.ok()) {
      const bool broken =
          absl::IsDataLoss(record.status()) || absl::IsUnimplemented(record.status());
      unreadable.push_back({path + "/" + name, Message(record.status()), broken});
      continue;
    }
    record->this_boot = !boot_id_.empty() && record->boot_id == boot_id_;
    records[record->address] = *std::move(record);
  }
  return records;
}

absl::Status Journal::SetAside(const Unreadable& file) const {
  for (int i = 1; i <= kMostAside; ++i) {
    const std::string to = absl::StrFormat("%s.aside-%d", file.path, i);
    if (::link(file.path.c_str(), to.c_str()) == 0) {
      if (::unlink(file.path.c_str()) != 0) {
        return ErrnoStatus(absl::StrFormat("remove %s", file.path));
      }
      return SyncDirectory(dir_ + "/devices");
    }
    if (errno != EEXIST) return ErrnoStatus(absl::StrFormat("rename %s", file.path));
  }
  return absl::ResourceExhaustedError(
      absl::StrFormat("%s: %d files stand aside already", file.path, kMostAside));
}

absl::Status Journal::Write(const Record& record) const {
  const std::string path = PathOf(record.address);
  RETURN_IF_ERROR(MakeDirectories(dir_ + "/devices"));
  return ReplaceFile(path, RecordToText(record));
}

absl::Time Journal::Written(const PciAddress& device) const {
  struct stat info = {};
  if (::stat(PathOf(device).c_str(), &info) != 0) return absl::InfinitePast();
  return absl::TimeFromTimespec(info.st_mtim);
}

absl::Status Journal::Forget(const PciAddress& address) const {
  const std::string path = PathOf(address);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(absl::StrFormat("remove %s", path));
}

}  // namespace vfio_agent
