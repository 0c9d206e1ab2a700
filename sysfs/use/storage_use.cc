#include "sysfs/use/storage_use.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {
namespace {

constexpr int kMaxStack = 8;
constexpr size_t kMaxMountsShown = 3;

std::vector<std::string> ListOrNone(const Tree& tree, std::string_view path) {
  absl::StatusOr<std::vector<std::string>> names = tree.List(path);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

// The kernel writes blanks and backslashes in names as "\040" (fs/proc_namespace.c, mangle()).
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::optional<uint64_t> code = text[i] == '\\' && i + 3 < text.size()
                                             ? ParseNumber(text.substr(i + 1, 3), 8)
                                             : std::nullopt;
    plain.push_back(code && *code < 256 ? static_cast<char>(*code) : text[i]);
    if (code && *code < 256) i += 3;
  }
  return plain;
}

// One disk, partition or stacked device on the way up.
struct Block {
  std::string name;
  std::string dir;
  std::string number;
  std::string mapped;  // device mapper's name for it; empty for others
};

Block ReadBlock(const Tree& tree, const std::string& dir) {
  const absl::StatusOr<std::string> number = tree.ReadText(dir + "/dev");
  const absl::StatusOr<std::string> mapped = tree.ReadText(dir + "/dm/name");
  return {.name = std::string(NameOf(dir)),
          .dir = dir,
          .number = number.ok() ? *number : "",
          .mapped = mapped.ok() ? Printable(*mapped) : ""};
}

bool IsOf(const Mount& mount, const Block& block) {
  if (!block.number.empty() && mount.number == block.number) return true;
  if (mount.source == "/dev/" + block.name) return true;
  if (!block.mapped.empty() && mount.source == "/dev/mapper/" + block.mapped) return true;
  // The node itself mounted on a file: how a raw volume is given to a pod.
  return mount.type == "devtmpfs" && mount.root == "/" + block.name;
}

// " mounted on /boot, /srv and 3 more"; empty where nothing of `block` is mounted.
std::string MountsOf(const Block& block, const std::vector<Mount>& mounts) {
  std::vector<std::string> points;
  for (const Mount& mount : mounts) {
    if (IsOf(mount, block)) points.push_back(Printable(mount.point));
  }
  if (points.empty()) return "";
  const size_t more = points.size() - std::min(points.size(), kMaxMountsShown);
  points.resize(points.size() - more);
  const std::string text = absl::StrFormat("mounted on %s", absl::StrJoin(points, ", "));
  return more == 0 ? text : absl::StrFormat("%s and %d more", text, more);
}

std::string Label(const Block& block) {
  if (block.mapped.empty()) return block.name;
  return absl::StrFormat("%s (%s)", block.name, block.mapped);
}

// Climbs from one disk or partition to everything that stands on it.
class Climb {
 public:
  Climb(const Tree& tree, const HostStorage& storage, std::vector<Use>& uses)
      : tree_(tree), storage_(storage), uses_(uses) {}

  void From(const std::string& dir) {
    const Block block = ReadBlock(tree_, dir);
    Look(block, block.name, 0);
  }

 private:
  void Look(const Block& block, const std::string& chain, int height) {
    bool used = false;
    for (const std::string& what : Purposes(block)) {
      Report(absl::StrFormat("%s, %s", chain, what));
      used = true;
    }
    const std::vector<std::string> above = ListOrNone(tree_, block.dir + "/holders");
    if (above.empty() || height >= kMaxStack) {
      // Nothing mounted at the top of a stack: it is still somebody's.
      if (height > 0 && !used) Report(chain);
      return;
    }
    for (const std::string& holder : above) {
      const Block next = ReadBlock(tree_, block.dir + "/holders/" + holder);
      Look(next, absl::StrFormat("%s below %s", chain, Label(next)), height + 1);
    }
  }

  std::vector<std::string> Purposes(const Block& block) const {
    std::vector<std::string> purposes;
    const std::string mounted = MountsOf(block, storage_.mounts);
    if (!mounted.empty()) purposes.push_back(mounted);
    if (storage_.swaps.contains("/dev/" + block.name) ||
        (!block.mapped.empty() && storage_.swaps.contains("/dev/mapper/" + block.mapped))) {
      purposes.emplace_back("used as swap");
    }
    if (mounted.empty() && storage_.btrfs.contains(block.name)) {
      purposes.emplace_back("a device of a mounted btrfs");
    }
    return purposes;
  }

  void Report(const std::string& what) {
    uses_.push_back({.kind = UseKind::kStorage, .text = absl::StrFormat("carries %s", what)});
  }

  const Tree& tree_;
  const HostStorage& storage_;
  std::vector<Use>& uses_;
};

// For disks on which no use was found, though there may be one.
std::string Doubt(const HostStorage& storage) {
  if (!storage.mounts_known) {
    return "whether something on it is mounted cannot be seen without hostPID";
  }
  if (storage.pools.empty()) return "";
  return absl::StrFormat("which may belong to a ZFS pool (%s): the kernel does not tell its disks",
                         absl::StrJoin(storage.pools, ", "));
}

}  // namespace

// "36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw": id, parent, number, root, point,
// options, any number of tags, "-", type, source, options (Documentation/filesystems/proc.rst).
std::vector<Mount> ParseMounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string_view line : Lines(mountinfo)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() < 9) continue;
    const auto dash = std::find(field.begin() + 6, field.end(), std::string_view("-"));
    if (field.end() - dash < 3 || !ParseDeviceNumber(field[2])) continue;
    mounts.push_back({.number = std::string(field[2]),
                      .root = Unescape(field[3]),
                      .point = Unescape(field[4]),
                      .type = std::string(dash[1]),
                      .source = Unescape(dash[2])});
  }
  return mounts;
}

// A headline, then lines of name, type, size, used, priority.
std::set<std::string> ParseSwaps(std::string_view swaps) {
  std::set<std::string> names;
  for (const std::string_view line : Lines(swaps)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() >= 2 && field[1] == "partition") names.insert(Unescape(field[0]));
  }
  return names;
}

HostStorage ReadHostStorage(const Tree& tree) {
  HostStorage storage;
  const absl::StatusOr<std::string> mounts = ReadProcText(tree, kHostMounts);
  // A kernel without swap has no list of it.
  const absl::StatusOr<std::string> swaps = ReadProcText(tree, kSwaps);
  storage.mounts_known =
      mounts.ok() && SeesAllProcesses(tree) && (swaps.ok() || absl::IsNotFound(swaps.status()));
  if (storage.mounts_known) storage.mounts = ParseMounts(*mounts);
  if (swaps.ok()) storage.swaps = ParseSwaps(*swaps);
  for (const std::string& entry : ListOrNone(tree, kBtrfsDir)) {
    for (std::string& name : ListOrNone(tree, absl::StrFormat("%s/%s/devices", kBtrfsDir, entry))) {
      storage.btrfs.insert(std::move(name));
    }
  }
  for (std::string& name : ListOrNone(tree, kZfsPoolsDir)) {
    // Statistics of ZFS itself are files; each imported pool has a directory.
    if (tree.List(absl::StrFormat("%s/%s", kZfsPoolsDir, name)).ok()) {
      storage.pools.push_back(Printable(name));
    }
  }
  return storage;
}

std::vector<Use> StorageUses(const Tree& tree, const Below& below, const HostStorage& storage) {
  std::vector<Use> uses;
  Climb climb(tree, storage, uses);
  for (const std::string& dir : below.disks) climb.From(dir);
  const std::string doubt = Doubt(storage);
  if (!uses.empty() || doubt.empty()) return uses;
  for (const std::string& dir : below.disks) {
    if (tree.Exists(dir + "/partition")) continue;
    uses.push_back({.kind = UseKind::kStorage,
                    .text = absl::StrFormat("carries %s, %s", NameOf(dir), doubt),
                    .remedy = storage.mounts_known ? "" : "run the agent with hostPID"});
  }
  return uses;
}

}  // namespace vfio_agent
