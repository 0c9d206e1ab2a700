// Recording: what was read below one root, as files that give the same answers again.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sysfs/tree.h"

namespace vfio_agent {

enum class ItemKind {
  kNamed,  // seen in a listing and never read: an empty file
  kFile,
  kLink,
  kDirectory,
};

struct Item {
  ItemKind kind = ItemKind::kNamed;
  std::string text;  // a file's bytes, a link's target
  bool operator==(const Item&) const = default;
};

struct Recording {
  std::map<std::string, Item> items;  // by path below the root, free of links
  Replay replay;
  bool operator==(const Recording&) const = default;
};

// Puts readings together. Of the processes only those are kept that more was asked of than their
// name, and of their descriptors those to devices: the rest is nobody's business.
class RecordingBuilder {
 public:
  // `tree` tells where links lead; it outlives the builder.
  explicit RecordingBuilder(const Tree& tree) : tree_(tree) {}

  void Add(const Reading& reading);

  // Errors that the files give by themselves are left out.
  Recording Finish() &&;

 private:
  void AddList(const std::string& place, std::string_view entries);
  void Put(const std::string& place, ItemKind kind, std::string text);
  bool IsNatural(const ReadQuestion& question, const absl::Status& status);
  void FreeParents();
  void DropBystanders();

  // Where `path` is once its links are followed, each of which is put among the items.
  std::string PlaceOf(std::string_view path, bool follow_last);
  std::optional<std::string> TargetOf(const std::string& place);
  bool FollowLink(const std::string& place, std::deque<std::string>& parts, std::string& at);

  const Tree& tree_;
  Recording recording_;
  std::map<std::string, std::optional<std::string>> targets_;
  std::set<std::string> meant_;  // "proc/42"
};

}  // namespace vfio_agent
