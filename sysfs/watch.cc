#include "sysfs/watch.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kFailed = "failed";
constexpr std::array<std::string_view, 8> kNames = {"text", "bytes", "link", "list",
                                                    "open", "node",  "size", "hidden"};

std::vector<std::string> Cut(std::string_view line, size_t most) {
  std::vector<std::string> parts;
  while (parts.size() + 1 < most && line.find('\t') != std::string_view::npos) {
    parts.emplace_back(line.substr(0, line.find('\t')));
    line.remove_prefix(line.find('\t') + 1);
  }
  parts.emplace_back(line);
  return parts;
}

std::optional<ReadKind> KindOf(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<ReadKind>(found - kNames.begin());
}

// A tab or a line break would end its field.
std::string Plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n'; }, '?');
  return text;
}

// "failed", kind, path, code, errno, message.
absl::Status AddFailure(std::string_view line, Replay& replay) {
  const std::vector<std::string> part = Cut(line, 6);
  int code = 0, error = 0;
  const std::optional<ReadKind> kind = part.size() == 6 ? KindOf(part[1]) : std::nullopt;
  if (!kind || !absl::SimpleAtoi(part[3], &code) || !absl::SimpleAtoi(part[4], &error) ||
      code <= 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated) || error < 0) {
    return absl::DataLossError("no failure of a read");
  }
  absl::Status status(static_cast<absl::StatusCode>(code), part[5]);
  if (error != 0) status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(error)));
  replay.failures[{*kind, part[2]}] = status;
  return absl::OkStatus();
}

absl::Status AddLine(std::string_view line, Replay& replay) {
  const std::vector<std::string> part = Cut(line, 3);
  if (part[0] == kFailed) return AddFailure(line, replay);
  const std::optional<ReadKind> kind = KindOf(part[0]);
  if (part.size() != 3 || !kind || *kind < ReadKind::kNode) {
    return absl::DataLossError("no note of a read");
  }
  replay.notes[{*kind, part[1]}] = part[2];
  return absl::OkStatus();
}

}  // namespace

std::string_view Name(ReadKind kind) { return kNames.at(static_cast<size_t>(kind)); }

std::string ReplayToText(const Replay& replay) {
  std::string text;
  for (const auto& [question, note] : replay.notes) {
    text +=
        absl::StrFormat("%s\t%s\t%s\n", Name(question.first), Plain(question.second), Plain(note));
  }
  for (const auto& [question, status] : replay.failures) {
    text += absl::StrFormat("%s\t%s\t%s\t%d\t%d\t%s\n", kFailed, Name(question.first),
                            Plain(question.second), static_cast<int>(status.code()),
                            ErrnoOf(status), Plain(Message(status)));
  }
  return text;
}

absl::StatusOr<Replay> ParseReplay(std::string_view text) {
  Replay replay;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (absl::Status status = AddLine(text.substr(0, end), replay); !status.ok()) {
      return Annotate(status, absl::StrFormat("%s:%d", kReplayFile, number));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return replay;
}

absl::Status Watch::Ask(ReadKind kind, std::string_view path) const {
  const ReadQuestion question(kind, path);
  const auto found = replay_.failures.find(question);
  if (found != replay_.failures.end()) return found->second;
  if (recorder_.begin) recorder_.begin(question);
  return absl::OkStatus();
}

std::optional<std::string> Watch::NoteOf(ReadKind kind, std::string_view path) const {
  const auto found = replay_.notes.find(ReadQuestion(kind, path));
  if (found == replay_.notes.end()) return std::nullopt;
  return found->second;
}

void Watch::Tell(ReadKind kind, std::string_view path, std::string text,
                 const absl::Status& status) const {
  if (!recorder_.end) return;
  recorder_.end(
      {.kind = kind, .path = std::string(path), .text = std::move(text), .status = status});
}

std::string TextOf(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) text += (entry.is_link ? "@" : "") + entry.name + "\n";
  return text;
}

}  // namespace vfio_agent
