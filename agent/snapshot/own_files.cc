#include "agent/snapshot/own_files.h"

#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_format.h"
#include "agent/config/config.h"
#include "agent/config/settings.h"
#include "agent/snapshot/additions.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr size_t kLargestConfig = size_t{1} << 20;
constexpr size_t kLargestRecord = size_t{64} << 10;
constexpr size_t kLargestPciIds = size_t{16} << 20;
constexpr char kIommufd[] = "kubelet.iommufd";  // the one setting that a plan depends on

using Notes = std::vector<std::string>;

// Without the first slash: below a root.
std::string InRoot(std::string_view path) { return std::string(path.substr(1)); }

absl::Status WriteOwn(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : ErrnoStatus(absl::StrFormat("write %s", path));
}

absl::Status MakeOwn(const std::string& directory) {
  return ::mkdir(directory.c_str(), 0700) == 0
             ? absl::OkStatus()
             : ErrnoStatus(absl::StrFormat("mkdir %s", directory));
}

// A snapshot without one has the defaults, not what this machine has configured.
absl::Status CopyConfig(const Tree& tree, const std::string& place, Notes& notes) {
  const std::string name = InRoot(kDefaultConfigFile);
  absl::StatusOr<std::string> text = tree.ReadText(name, kLargestConfig);
  if (absl::IsNotFound(text.status())) text = "apiVersion: vfio-agent/v1\n";
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(const Config config, ParseConfig(*text, name));
  for (const auto& [key, value] : config.settings) {
    if (key == kIommufd) continue;
    notes.push_back(
        absl::StrFormat("%s: %s is not taken: of a snapshot's configuration only the policy and "
                        "%s are",
                        name, key, kIommufd));
  }
  const auto iommufd = config.settings.find(kIommufd);
  const bool on = iommufd != config.settings.end() && iommufd->second == "true";
  return WriteOwn(place + kOwnConfigFile, PolicyToText(config, on));
}

absl::Status CopyJournal(const Tree& tree, const std::string& place, Notes& notes) {
  const std::string from = InRoot(kDefaultStateDir) + "/devices";
  const std::string to = place + kOwnStateDir + "/devices";
  RETURN_IF_ERROR(MakeOwn(place + kOwnStateDir));
  const absl::StatusOr<std::vector<std::string>> names = tree.List(from);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) {
    notes.push_back("the journal is not taken: " + Printable(Message(names.status()), 256));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(MakeOwn(to));
  for (const std::string& name : *names) {
    const absl::StatusOr<std::string> text = tree.ReadText(from + "/" + name, kLargestRecord);
    if (!text.ok()) {
      notes.push_back("of the journal is not taken: " + Printable(Message(text.status()), 256));
      continue;
    }
    RETURN_IF_ERROR(WriteOwn(to + "/" + name, *text));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CopyOwnFiles(const std::string& root,
                                                      const std::string& place) {
  ASSIGN_OR_RETURN(const Tree tree, Tree::Open(root));
  Notes notes;
  RETURN_IF_ERROR(CopyConfig(tree, place, notes));
  RETURN_IF_ERROR(CopyJournal(tree, place, notes));
  // Where there are none devices are named by their ids, and whoever looks for them says so.
  const absl::StatusOr<std::string> names = tree.ReadText(InRoot(kDefaultPciIds), kLargestPciIds);
  if (names.ok()) RETURN_IF_ERROR(WriteOwn(place + kOwnPciIds, *names + "\n"));
  return notes;
}

}  // namespace vfio_agent
