#include "agent/outlets/cdi_files.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "agent/outlets/cdi.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr mode_t kDirMode = 0755;
constexpr mode_t kFileMode = 0644;  // not only root looks for devices

using Files = std::map<std::string, std::string>;
using Problems = std::vector<std::string>;

void Add(const absl::Status& status, Problems& problems) {
  if (!status.ok()) problems.push_back(Message(status));
}

bool IsOurs(const std::string& name) {
  return name.starts_with("vfio-agent-") && name.ends_with(".json");
}

void RemoveOthers(const std::string& dir, const Files& files, Problems& problems) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(dir.c_str()), ::closedir);
  if (list == nullptr) {
    const bool none = errno == ENOENT || errno == ENOTDIR;
    if (!none) Add(ErrnoStatus(absl::StrFormat("list %s", dir)), problems);
    return;
  }
  // The stream is this function's own.
  while (const dirent* entry = ::readdir(list.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = entry->d_name;
    if (!IsOurs(name) || files.contains(name)) continue;
    Add(RemoveRegularFile(absl::StrFormat("%s/%s", dir, name)), problems);
  }
}

void WriteChanged(const std::string& dir, const Files& files, Problems& problems) {
  if (files.empty()) return;
  if (const absl::Status made = MakeDirectories(dir, kDirMode); !made.ok()) {
    return Add(made, problems);
  }
  for (const auto& [name, text] : files) {
    const std::string path = absl::StrFormat("%s/%s", dir, name);
    // Read each time: what somebody else has done to it is put right as well.
    const absl::StatusOr<std::string> now = ReadSmallFile(path, text.size() + 1);
    if (now.ok() && *now == text) continue;
    const absl::Status replaced = ReplaceFile(path, text, kFileMode);
    if (replaced.ok()) continue;
    Add(replaced, problems);
    // Better none than one that leads to another's group.
    Add(RemoveRegularFile(path), problems);
  }
}

}  // namespace

std::vector<std::string> CdiFiles::Update(const std::string& dir,
                                          const std::vector<Offer>& offers) {
  Problems problems;
  if (!dir_.empty() && dir_ != dir) RemoveOthers(dir_, {}, problems);
  dir_ = dir;
  if (!dir.empty()) {
    CdiSpecs specs = MakeCdiSpecs(offers);
    problems.insert(problems.end(), specs.problems.begin(), specs.problems.end());
    RemoveOthers(dir, specs.files, problems);
    WriteChanged(dir, specs.files, problems);
  }
  Problems news;
  std::ranges::copy_if(problems, std::back_inserter(news), [this](const std::string& problem) {
    return std::ranges::count(told_, problem) == 0;
  });
  told_ = std::move(problems);
  return news;
}

}  // namespace vfio_agent
