#include "agent/origins.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "iommu/planning.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kSchema[] = "vfio-agent/origin/v1";
constexpr size_t kLargest = 4096;

absl::Status SyncDirectory(const std::string& path) {
  const Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid() || ::fsync(dir.get()) != 0) return ErrnoStatus(absl::StrFormat("sync %s", path));
  return absl::OkStatus();
}

absl::Status WriteSynced(const std::string& path, const std::string& text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("create %s", path));
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  if (n != static_cast<ssize_t>(text.size()) || ::fsync(fd.get()) != 0) {
    return ErrnoStatus(absl::StrFormat("write %s", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmall(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  std::string text(kLargest, '\0');
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", path));
  text.resize(static_cast<size_t>(n));
  return text;
}

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string OriginStore::PathOf(const PciAddress& address) const {
  return absl::StrFormat("%s/devices/%s.json", dir_, address.ToString());
}

absl::StatusOr<OriginStore::Record> OriginStore::ReadRecord(const std::string& path) const {
  ASSIGN_OR_RETURN(const std::string text, ReadSmall(path));
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || TextOf(object, "schema") != kSchema) {
    return absl::DataLossError(absl::StrFormat("%s: not a record of %s", path, kSchema));
  }
  const auto address = PciAddress::Parse(TextOf(object, "address"));
  if (!address.ok()) return Annotate(address.status(), path);
  return Record{.origin = {.address = *address, .driver = TextOf(object, "driver")},
                .boot_id = TextOf(object, "boot_id")};
}

absl::StatusOr<Origins> OriginStore::Read(std::vector<std::string>& bad) const {
  const std::string path = dir_ + "/devices";
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), ::closedir);
  if (dir == nullptr) {
    if (errno == ENOENT) return Origins();
    return ErrnoStatus(absl::StrFormat("open %s", path));
  }
  Origins origins;
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = entry->d_name;
    if (!name.ends_with(".json")) continue;
    const absl::StatusOr<Record> record = ReadRecord(path + "/" + name);
    if (record.ok()) {
      origins[record->origin.address] = record->origin;
    } else {
      bad.push_back(Message(record.status()));
    }
  }
  return origins;
}

absl::Status OriginStore::Note(const PciDevice& device) {
  if (device.driver && IsVfioDriver(*device.driver)) return absl::OkStatus();
  const std::string path = PathOf(device.address);
  if (!device.driver) {
    const absl::StatusOr<Record> before = ReadRecord(path);
    if (before.ok() && before->boot_id == boot_id_) return absl::OkStatus();
  }
  const json object = {{"schema", kSchema},
                       {"address", device.address.ToString()},
                       {"id", absl::StrFormat("%04x:%04x", device.vendor, device.device)},
                       {"driver", device.driver.value_or("")},
                       {"group", device.group.value_or(-1)},
                       {"boot_id", boot_id_}};
  RETURN_IF_ERROR(MakeDirectories(dir_ + "/devices"));
  const std::string fresh = path + ".new";
  RETURN_IF_ERROR(WriteSynced(fresh, object.dump() + "\n"));
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(absl::StrFormat("rename %s", fresh));
  }
  return SyncDirectory(dir_ + "/devices");
}

absl::Status OriginStore::Forget(const PciAddress& address) {
  const std::string path = PathOf(address);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(absl::StrFormat("remove %s", path));
}

}  // namespace vfio_agent
