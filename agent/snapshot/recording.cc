#include "agent/snapshot/recording.h"

#include <fnmatch.h>

#include <cerrno>

#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr int kMostLinks = 40;  // as the kernel
constexpr char kUnread[] = "unread";

bool Fits(const std::string& path, const char* pattern) {
  return ::fnmatch(pattern, path.c_str(), FNM_PATHNAME) == 0;
}

// Of a process's descriptors only those to the asked devices are kept, and those come by their own
// readings.
bool IsOfProcesses(const std::string& path) {
  return path == "proc" || Fits(path, "proc/[0-9]*/fd");
}

// This process, another one at each look.
bool IsOwn(const std::string& path) {
  return path == "proc/self" || path.starts_with("proc/self/");
}

// "proc/42"; empty for what is of no process but the first, whose mounts and routes are the host's.
std::string ProcessOf(const std::string& path) {
  if (!Fits(path.substr(0, path.find('/', 5)), "proc/[0-9]*")) return "";
  const std::string process = path.substr(0, path.find('/', 5));
  return process == "proc/1" ? "" : process;
}

// What is read of every process, to find those that are meant.
bool IsOfEach(const std::string& path) {
  return Fits(path, "proc/[0-9]*/comm") || Fits(path, "proc/[0-9]*/fd/*") ||
         Fits(path, "proc/[0-9]*/fd") || Fits(path, "proc/[0-9]*");
}

std::deque<std::string> PartsOf(std::string_view path) {
  std::deque<std::string> parts;
  for (const std::string_view part : Split(path, '/')) parts.emplace_back(part);
  return parts;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string Join(const std::string& dir, const std::string& name) {
  return dir.empty() ? name : dir + "/" + name;
}

// Readers of attributes take a line break off the end.
std::string WithLineBreak(std::string text) {
  if (!text.empty() && !text.ends_with('\n')) text.push_back('\n');
  return text;
}

}  // namespace

void RecordingBuilder::Add(const Reading& reading) {
  if (IsOwn(reading.path)) return;
  const ReadQuestion question(reading.kind, reading.path);
  if (!IsOfEach(reading.path) || reading.kind == ReadKind::kNode) {
    meant_.insert(ProcessOf(reading.path));
  }
  if (reading.kind >= ReadKind::kNode) {
    recording_.replay.notes[question] = reading.text;
    return;
  }
  if (!reading.status.ok()) {
    if (!IsOfProcesses(reading.path)) recording_.replay.failures[question] = reading.status;
    return;
  }
  if (IsOfProcesses(reading.path)) {
    if (reading.path == "proc") Put("proc", ItemKind::kDirectory, "");
    return;
  }
  const std::string place = PlaceOf(reading.path, reading.kind != ReadKind::kLink);
  switch (reading.kind) {
    case ReadKind::kText:
      return Put(place, ItemKind::kFile, WithLineBreak(reading.text));
    case ReadKind::kBytes:
      return Put(place, ItemKind::kFile, reading.text);
    case ReadKind::kLink:
      return Put(place, ItemKind::kLink, reading.text);
    case ReadKind::kList:
      return AddList(place, reading.text);
    default:
      return Put(place, ItemKind::kNamed, "");
  }
}

void RecordingBuilder::AddList(const std::string& place, std::string_view entries) {
  Put(place, ItemKind::kDirectory, "");
  for (std::string_view entry : Lines(entries)) {
    const bool is_link = entry.starts_with('@');
    if (is_link) entry.remove_prefix(1);
    const std::string path = Join(place, std::string(entry));
    // Where the link leads is kept once somebody follows it.
    if (!recording_.items.contains(path)) {
      recording_.items[path] = {.kind = ItemKind::kNamed, .text = is_link ? kUnread : ""};
    }
  }
}

// What was read first stays: a later look is of another moment.
void RecordingBuilder::Put(const std::string& place, ItemKind kind, std::string text) {
  if (place.empty()) return;
  Item& item = recording_.items[place];
  if (item.kind != ItemKind::kNamed || kind == ItemKind::kNamed) return;
  item = {.kind = kind, .text = std::move(text)};
}

std::optional<std::string> RecordingBuilder::TargetOf(const std::string& place) {
  const auto known = targets_.find(place);
  if (known != targets_.end()) return known->second;
  const absl::StatusOr<std::string> target = tree_.ReadLink(place);
  return targets_[place] = target.ok() ? std::optional(*target) : std::nullopt;
}

bool RecordingBuilder::FollowLink(const std::string& place, std::deque<std::string>& parts,
                                  std::string& at) {
  const std::optional<std::string> target = TargetOf(place);
  if (!target) return false;
  Put(place, ItemKind::kLink, *target);
  const std::deque<std::string> more = PartsOf(*target);
  parts.insert(parts.begin(), more.begin(), more.end());
  at = target->starts_with('/') ? "" : ParentOf(place);
  return true;
}

std::string RecordingBuilder::PlaceOf(std::string_view path, bool follow_last) {
  std::deque<std::string> parts = PartsOf(path);
  std::string at;
  int links = 0;
  while (!parts.empty()) {
    const std::string part = parts.front();
    parts.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      at = ParentOf(at);
      continue;
    }
    const std::string place = Join(at, part);
    const bool follow = follow_last || !parts.empty();
    if (follow && links < kMostLinks && FollowLink(place, parts, at)) {
      ++links;
    } else {
      at = place;
    }
  }
  return at;
}

// The files as they are recorded give this error without being told.
bool RecordingBuilder::IsNatural(const ReadQuestion& question, const absl::Status& status) {
  const int error = ErrnoOf(status);
  if (error != ENOENT && error != ENOTDIR && error != EINVAL) return false;
  const auto found =
      recording_.items.find(PlaceOf(question.second, question.first != ReadKind::kLink));
  if (found == recording_.items.end()) return error != EINVAL;
  const ItemKind kind = found->second.kind;
  if (error == ENOTDIR) return kind != ItemKind::kDirectory && kind != ItemKind::kLink;
  return error == EINVAL && question.first == ReadKind::kLink && kind != ItemKind::kLink &&
         found->second.text != kUnread;
}

// What has something below it is a directory, even where nobody has listed it.
void RecordingBuilder::FreeParents() {
  std::map<std::string, Item> parents;
  for (const auto& [path, item] : recording_.items) {
    for (std::string parent = ParentOf(path); !parent.empty(); parent = ParentOf(parent)) {
      if (!parents.try_emplace(parent, Item{.kind = ItemKind::kDirectory}).second) break;
    }
  }
  for (auto& [path, item] : parents) recording_.items[path] = item;
}

void RecordingBuilder::DropBystanders() {
  const auto unwanted = [this](const std::string& path) {
    const std::string process = ProcessOf(path);
    return !process.empty() && !meant_.contains(process);
  };
  std::erase_if(recording_.items, [&](const auto& entry) {
    const auto& [path, item] = entry;
    if (unwanted(path)) return true;
    return Fits(path, "proc/[0-9]*/fd/*") && item.text.find("/dev/") == std::string::npos &&
           !recording_.replay.notes.contains({ReadKind::kNode, path});
  });
  std::erase_if(recording_.replay.failures,
                [&](const auto& entry) { return unwanted(entry.first.second); });
}

Recording RecordingBuilder::Finish() && {
  DropBystanders();
  FreeParents();
  for (auto& [path, item] : recording_.items) {
    if (item.kind == ItemKind::kNamed && item.text == kUnread) item.kind = ItemKind::kLink;
  }
  std::erase_if(recording_.replay.failures,
                [this](const auto& entry) { return IsNatural(entry.first, entry.second); });
  return std::move(recording_);
}

}  // namespace vfio_agent
