#include "agent/outlets/nfd_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr mode_t kDirMode = 0755;
constexpr mode_t kFileMode = 0644;
// NFD reads every file of the directory but those whose names begin with a dot.
constexpr char kFresh[] = ".vfio-agent.tmp";
constexpr absl::Duration kPause = absl::Seconds(2);

std::string PathIn(const std::string& dir) { return absl::StrFormat("%s/vfio-agent", dir); }

}  // namespace

bool NfdFile::IsCurrent(const std::string& path, const std::string& labels, absl::Duration validity,
                        absl::Time wall) const {
  const absl::Duration left = expiry_ - wall;
  // More than a whole time: the clock was set back.
  if (labels != labels_ || left <= validity / 2 || left > validity) return false;
  const std::string text = NfdText(labels_, expiry_);
  const absl::StatusOr<std::string> there = ReadSmallFile(path, text.size() + 1);
  return there.ok() && *there == text;
}

absl::Status NfdFile::Write(const std::string& labels, absl::Duration validity, Clocks now) {
  if (const absl::Status made = MakeDirectories(dir_, kDirMode); !made.ok()) return made;
  const absl::Time expiry = now.wall + validity;
  const absl::Status status = ReplaceFile(PathIn(dir_), NfdText(labels, expiry), kFileMode, kFresh);
  if (!status.ok()) return status;
  labels_ = labels;
  expiry_ = expiry;
  written_ = now.steady;
  return status;
}

std::vector<std::string> NfdFile::Update(const std::string& dir, const NfdLabels& labels,
                                         absl::Duration validity, Clocks now) {
  std::vector<std::string> problems;
  const auto add = [&problems](const absl::Status& status) {
    if (!status.ok()) problems.push_back(Message(status));
  };
  if (dir_ != dir) {
    if (!dir_.empty()) add(RemoveRegularFile(PathIn(dir_)));
    dir_ = dir;
    written_ = absl::InfinitePast();
    expiry_ = absl::InfinitePast();
  }
  due_ = absl::InfiniteFuture();
  if (!dir.empty()) {
    problems.insert(problems.end(), labels.problems.begin(), labels.problems.end());
    if (!IsCurrent(PathIn(dir), labels.text, validity, now.wall)) {
      if (now.steady < written_ + kPause) {
        due_ = written_ + kPause;
      } else {
        add(Write(labels.text, validity, now));
      }
    }
  }
  std::vector<std::string> news;
  std::ranges::copy_if(problems, std::back_inserter(news), [this](const std::string& problem) {
    return std::ranges::count(told_, problem) == 0;
  });
  told_ = std::move(problems);
  return news;
}

}  // namespace vfio_agent
