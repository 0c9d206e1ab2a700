#include "agent/snapshot/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "agent/snapshot/mask_text.h"
#include "agent/snapshot/masks.h"
#include "agent/version.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Items = std::map<std::string, Item>;

bool IsPlainName(const std::string& path) {
  return std::ranges::all_of(
      path, [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

// Names first, in their order, and only then what is in the files: numbers are given as things
// come, and a snapshot of the snapshot has to come by them in the same way.
Items MaskPlaces(Items items, Masker& masker) {
  Items placed;
  for (auto& [path, item] : items) {
    if (IsPlainName(path)) placed[MaskPlace(path, masker)] = std::move(item);
  }
  return placed;
}

void MaskItems(Items& items, Masker& masker, std::map<std::string, size_t>& counts) {
  for (auto& [path, item] : items) {
    if (item.kind == ItemKind::kDirectory || item.text.empty()) continue;
    const Mask& mask = MaskFor(path);
    const bool open_file = mask.apply == MaskOpenFile;
    // Links lead to other places, which have other names as well.
    std::string masked = item.kind == ItemKind::kLink && !open_file
                             ? MaskTarget(path, item.text, masker)
                             : mask.apply(item.text, masker);
    if (masked == item.text) continue;
    ++counts[mask.what];
    item.text = std::move(masked);
  }
}

Replay MaskReplay(const Replay& replay, Masker& masker) {
  Replay masked;
  for (const auto& [question, note] : replay.notes) {
    const bool is_path = question.first != ReadKind::kHidden;
    masked.notes[{question.first, is_path ? MaskPlace(question.second, masker) : question.second}] =
        note;
  }
  for (const auto& [question, status] : replay.failures) {
    absl::Status plain(status.code(), MaskMessage(Message(status), question.second, masker));
    if (ErrnoOf(status) != 0) {
      plain.SetPayload(kErrnoPayload, absl::Cord(std::to_string(ErrnoOf(status))));
    }
    masked.failures[{question.first, MaskPlace(question.second, masker)}] = plain;
  }
  return masked;
}

Json MaskUnfinished(const std::vector<std::string>& unfinished, Masker& masker) {
  Json masked = Json::array();
  for (const std::string& line : unfinished) {
    const size_t at = line.find(kGivenUpAfter);
    const std::string path =
        at == std::string::npos ? "" : line.substr(at + std::string_view(kGivenUpAfter).size());
    masked.push_back(MaskMessage(line, path, masker));
  }
  return masked;
}

Json FailuresOf(const Replay& replay) {
  Json list = Json::array();
  for (const auto& [question, status] : replay.failures) {
    list.push_back({{"path", question.second},
                    {"read", std::string(Name(question.first))},
                    {"why", Message(status)}});
  }
  return list;
}

Json HiddenOf(const Replay& replay) {
  Json list = Json::array();
  for (const auto& [question, note] : replay.notes) {
    if (question.first == ReadKind::kHidden) list.push_back(question.second);
  }
  return list;
}

// Masks count only where they changed something, and what is masked changes no more: so it is said
// which of them there are, for a snapshot of a snapshot has the same bytes.
Json MaskedKinds() {
  Json list = Json::array();
  for (const Mask& mask : Masks()) {
    if (std::ranges::find(list, Json(mask.what)) == list.end()) list.push_back(mask.what);
  }
  return list;
}

std::string TextAt(const Items& items, const std::string& path) {
  const auto found = items.find(path);
  const std::string text = found == items.end() ? "" : found->second.text;
  return text.substr(0, text.find('\n'));
}

}  // namespace

Snapshot MakeSnapshot(Recording recording, const Additions& additions,
                      const std::vector<std::string>& unfinished) {
  for (const auto& [path, text] : additions) {
    recording.items[path] = {.kind = ItemKind::kFile, .text = text};
  }
  // What the last snapshot said of itself.
  recording.items.erase(kAboutFile);
  recording.items.erase(kReplayFile);
  Masker masker;
  Snapshot snapshot{.items = MaskPlaces(std::move(recording.items), masker)};
  std::map<std::string, size_t> counts;
  MaskItems(snapshot.items, masker, counts);
  const Replay replay = MaskReplay(recording.replay, masker);
  snapshot.about = {{"schema", "vfio-agent/snapshot/v1"},
                    {"version", std::string(AgentVersion())},
                    {"kernel", TextAt(snapshot.items, kKernelRelease)},
                    {"not_read", FailuresOf(replay)},
                    {"not_seen", HiddenOf(replay)},
                    {"unfinished", MaskUnfinished(unfinished, masker)},
                    {"masks", MaskedKinds()}};
  snapshot.items[kReplayFile] = {.kind = ItemKind::kFile, .text = ReplayToText(replay)};
  snapshot.items[kAboutFile] = {.kind = ItemKind::kFile, .text = DumpJson(snapshot.about)};
  for (const auto& [what, files] : counts) snapshot.masked.push_back({what, files});
  return snapshot;
}

}  // namespace vfio_agent
