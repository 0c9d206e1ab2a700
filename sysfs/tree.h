// Tree: read access to the kernel's file systems below one root directory.
//
// Every kernel fact the agent uses is read through a Tree, so pointing it at another directory
// points the whole agent there: "/" on a node, a copied or simulated tree in tests. Paths are
// relative to the root and never start with '/' ("sys/bus/pci/devices"). Links are resolved
// inside the root (openat2, RESOLVE_IN_ROOT): none can lead out of it. Const and thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sysfs/fd.h"
#include "sysfs/watch.h"

namespace vfio_agent {

class Tree {
 public:
  // Opens `root`. NotFound / PermissionDenied as the kernel says. Where the root is a record of
  // another node (kReplayFile), what was not readable there is not readable here.
  static absl::StatusOr<Tree> Open(const std::string& root);
  // The same, and tells `recorder` of every read; what `known` has is answered from it.
  static absl::StatusOr<Tree> OpenRecorded(const std::string& root, Recorder recorder,
                                           const Replay& known);

  // Whole text of one file, one trailing newline removed. OutOfRange above `limit` bytes (the
  // default is a page, the most an attribute can have); never truncated.
  absl::StatusOr<std::string> ReadText(std::string_view path, size_t limit = 4096) const;

  // The target of a symbolic link, as it is written.
  absl::StatusOr<std::string> ReadLink(std::string_view path) const;
  // Last component of the target: the driver's, group's or subsystem's name. NotFound where the
  // link is absent, which for "driver" means: no driver is bound.
  absl::StatusOr<std::string> ReadLinkName(std::string_view path) const;

  // Entry names of a directory, sorted, without dot files.
  absl::StatusOr<std::vector<std::string>> List(std::string_view path) const;

  bool Exists(std::string_view path) const;

  // Opens below the root with openat2; `flags` as for open(2).
  absl::StatusOr<Fd> OpenAt(std::string_view path, int flags) const;

  const std::string& root() const { return root_; }
  bool is_host() const { return root_ == "/"; }

  // Null for an ordinary tree. Who reads below the root by other means than this class asks and
  // tells it.
  const Watch* watch() const { return watch_.get(); }

 private:
  friend class TreeDir;
  friend absl::StatusOr<std::string> ReadProcText(const Tree& tree, std::string_view path,
                                                  size_t limit);

  Tree(std::string root, Fd dir) : root_(std::move(root)), dir_(std::move(dir)) {}

  // Without the watch.
  absl::StatusOr<Fd> OpenUnwatched(std::string_view path, int flags) const;
  absl::StatusOr<std::string> TargetOf(std::string_view path) const;
  absl::StatusOr<Replay> ReadReplay() const;

  std::string root_;
  Fd dir_;
  std::shared_ptr<const Watch> watch_;
};

// One directory of a Tree, held open: for many small files of one device. Attributes that are
// links are refused by Read() and non-links by ReadLink(): O_NOFOLLOW, so none leads elsewhere.
class TreeDir {
 public:
  static absl::StatusOr<TreeDir> Open(const Tree& tree, std::string_view path);

  // As Tree's, for names directly below this directory.
  absl::StatusOr<std::string> ReadText(const char* name) const;
  absl::StatusOr<std::string> ReadLinkName(const char* name) const;
  // Entries in the order in which the kernel gives them. Once for each object.
  absl::StatusOr<std::vector<Entry>> List() const;

  // Where the directory is, links resolved, as this process sees it (one look at proc/self/fd).
  absl::StatusOr<std::string> RealPath() const;

  int fd() const { return dir_.get(); }

 private:
  explicit TreeDir(Fd dir) : dir_(std::move(dir)) {}
  std::string PathOf(const char* name) const;

  Fd dir_;
  std::shared_ptr<const Watch> watch_;  // the tree's
  std::string path_;                    // empty without a watch
};

}  // namespace vfio_agent
