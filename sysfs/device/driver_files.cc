#include "sysfs/device/driver_files.h"

#include "absl/strings/str_format.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {

AskDrivers AskInTurn(const Tree& tree) {
  return [&tree](const std::vector<DriverFile>& files) {
    DriverTexts texts;
    for (const DriverFile& file : files) texts.emplace(file.path, tree.ReadText(file.path));
    return texts;
  };
}

DriverTexts AskNobody(const std::vector<DriverFile>& files) {
  DriverTexts texts;
  for (const DriverFile& file : files) texts.emplace(file.path, Silence(file.path));
  return texts;
}

absl::Status Silence(const std::string& file) { return absl::DeadlineExceededError(file); }

std::string SilentFile(const std::string& path, const absl::Status& status) {
  if (!absl::IsDeadlineExceeded(status)) return "";
  // In a snapshot the read that did not return has an errno, as all that failed there.
  return ErrnoOf(status) != 0 ? path : Message(status);
}

absl::StatusOr<std::string> TextOf(const DriverTexts& texts, const std::string& path) {
  const auto found = texts.find(path);
  if (found == texts.end()) return absl::NotFoundError(absl::StrFormat("not asked for: %s", path));
  return found->second;
}

}  // namespace vfio_agent
