// Watch: what stands between a Tree and the kernel where reads are recorded, or where a record of
// them is read instead of a kernel.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vfio_agent {

// One entry of a directory listing.
struct Entry {
  std::string name;
  bool is_link = false;
};

enum class ReadKind {
  kText,    // a file's text
  kBytes,   // a file's bytes
  kLink,    // a link's target
  kList,    // a directory's entries, one a line, '@' in front of links
  kOpen,    // opened, or looked for
  kNode,    // proc/<pid>/fd/<n>: the device that it is open on, "c 195:0"
  kSize,    // a file's size where it has more than can be read
  kHidden,  // "processes" or "descriptors": not all can be seen
};
std::string_view Name(ReadKind kind);

// What was asked: the path as the reader spelt it.
using ReadQuestion = std::pair<ReadKind, std::string>;

// One answer of the kernel. `text` is empty where `status` is an error.
struct Reading {
  ReadKind kind = ReadKind::kText;
  std::string path;
  std::string text;
  absl::Status status;
};

// What plain files cannot say of a recorded node: which reads failed there and how, and what
// stat(2) told. A root that has a file of this name is such a record, and its Tree answers from it.
inline constexpr char kReplayFile[] = "vfio-agent-replay";

struct Replay {
  std::map<ReadQuestion, absl::Status> failures;
  std::map<ReadQuestion, std::string> notes;  // kNode, kSize, kHidden
  bool operator==(const Replay&) const = default;
};

// One line each, tabs between the fields. DataLoss where a line has another form: half a record
// would give other verdicts than the node.
std::string ReplayToText(const Replay& replay);
absl::StatusOr<Replay> ParseReplay(std::string_view text);

// Called in the thread that reads. `begin` is told of a read that may not return.
struct Recorder {
  std::function<void(const ReadQuestion&)> begin;
  std::function<void(const Reading&)> end;
};

class Watch {
 public:
  Watch(Replay replay, Recorder recorder)
      : replay_(std::move(replay)), recorder_(std::move(recorder)) {}

  // The error that is known to be the answer; OK where the read is to be tried.
  absl::Status Ask(ReadKind kind, std::string_view path) const;
  std::optional<std::string> NoteOf(ReadKind kind, std::string_view path) const;
  void Tell(ReadKind kind, std::string_view path, std::string text,
            const absl::Status& status = absl::OkStatus()) const;

 private:
  Replay replay_;
  Recorder recorder_;
};

// How a Reading has what a read gave.
inline const std::string& TextOf(const std::string& text) { return text; }
std::string TextOf(const std::vector<Entry>& entries);
class Fd;
inline std::string TextOf(const Fd&) { return ""; }

// Calls `read`, which gives a StatusOr; with a watch it is asked first and told afterwards.
template <typename Read>
auto Watched(const Watch* watch, ReadKind kind, std::string_view path, const Read& read)
    -> decltype(read()) {
  if (watch == nullptr) return read();
  if (absl::Status known = watch->Ask(kind, path); !known.ok()) {
    watch->Tell(kind, path, "", known);
    return known;
  }
  auto result = read();
  watch->Tell(kind, path, result.ok() ? TextOf(*result) : std::string(), result.status());
  return result;
}

}  // namespace vfio_agent
