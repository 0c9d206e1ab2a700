// Vfs: the tree of directories, attributes, links and device nodes that the simulated kernel
// shows. Like kernfs: a file has no bytes, only a function that shows and one that stores.
//
// Not thread-safe; the Kernel's lock guards it. Paths are relative: "sys/bus/pci".
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace vfio_agent::sim {

// Somebody who reads or writes. `killed` says that he is being killed and an operation that
// blocks may give up.
struct Caller {
  std::function<bool()> killed = [] { return false; };
};

// One running operation: the Kernel's lock, held unless the operation is waiting.
struct Call {
  std::unique_lock<std::mutex>& lock;
  const Caller& caller;
};

struct Shown {
  int error = 0;  // errno
  std::string text;
};

using Show = std::function<Shown(Call&)>;
using Store = std::function<int(std::string_view text, Call&)>;  // 0 or an errno

enum class NodeKind { kDirectory, kFile, kLink, kCharacterDevice };

struct Node {
  NodeKind kind = NodeKind::kDirectory;
  mode_t mode = 0755;
  off_t size = 4096;
  dev_t device_number = 0;
  std::string target;
  Show show;
  Store store;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
};

class Vfs {
 public:
  // All of them make missing parents and replace what was there.
  Node& Directory(std::string_view path);
  Node& File(std::string_view path, Show show);
  Node& File(std::string_view path, mode_t mode, Show show, Store store);
  Node& Text(std::string_view path, std::string text);
  void Link(std::string_view path, std::string_view target_path);  // stored as a relative link
  void RawLink(std::string_view path, std::string target);
  void Character(std::string_view path, mode_t mode, dev_t number);

  // With everything below it. Nothing happens where there is none.
  void Remove(std::string_view path);

  // Null where there is none. Never follows links: the caller (FUSE: the real kernel) does.
  const Node* Find(std::string_view path) const;

  // `path` with all links resolved, the last one too if asked; empty where there is none.
  std::string Resolve(std::string_view path, bool follow_last = true) const;

  const Node& root() const { return root_; }

 private:
  Node& Make(std::string_view path);

  Node root_;
};

// "../../devices/x" for a link at `from` that leads to `to`.
std::string RelativeTarget(std::string_view from, std::string_view to);

std::vector<std::string_view> SplitPath(std::string_view path);

// The usual attribute: a text that is made when it is read.
template <typename Function>
Show Showing(Function function) {
  return [function](Call&) { return Shown{.error = 0, .text = function()}; };
}

}  // namespace vfio_agent::sim
