#include "test/sim/vfs.h"

#include <algorithm>
#include <utility>

namespace vfio_agent::sim {
namespace {

std::string Join(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) {
    if (!path.empty()) path += '/';
    path += part;
  }
  return path;
}

}  // namespace

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

std::string RelativeTarget(std::string_view from, std::string_view to) {
  const auto here = SplitPath(from);
  const auto there = SplitPath(to);
  size_t common = 0;
  while (common + 1 < here.size() && common < there.size() && here[common] == there[common]) {
    ++common;
  }
  std::string target;
  for (size_t i = common + 1; i < here.size(); ++i) target += "../";
  for (size_t i = common; i < there.size(); ++i) {
    target += there[i];
    if (i + 1 < there.size()) target += '/';
  }
  return target;
}

Node& Vfs::Make(std::string_view path) {
  Node* node = &root_;
  for (const std::string_view part : SplitPath(path)) {
    auto& child = node->children[std::string(part)];
    if (child == nullptr) child = std::make_unique<Node>();
    node = child.get();
  }
  return *node;
}

Node& Vfs::Directory(std::string_view path) { return Make(path); }

Node& Vfs::File(std::string_view path, mode_t mode, Show show, Store store) {
  Node& node = Make(path);
  node = Node{.kind = NodeKind::kFile, .mode = mode};
  node.show = std::move(show);
  node.store = std::move(store);
  return node;
}

Node& Vfs::File(std::string_view path, Show show) {
  return File(path, 0444, std::move(show), nullptr);
}

Node& Vfs::Text(std::string_view path, std::string text) {
  return File(path, Showing([text = std::move(text)] { return text; }));
}

void Vfs::Link(std::string_view path, std::string_view target_path) {
  RawLink(path, RelativeTarget(path, target_path));
}

void Vfs::RawLink(std::string_view path, std::string target) {
  Node& node = Make(path);
  node = Node{.kind = NodeKind::kLink, .mode = 0777};
  node.size = static_cast<off_t>(target.size());
  node.target = std::move(target);
}

void Vfs::Character(std::string_view path, mode_t mode, dev_t number) {
  Node& node = Make(path);
  node = Node{.kind = NodeKind::kCharacterDevice, .mode = mode};
  node.size = 0;
  node.device_number = number;
}

void Vfs::Remove(std::string_view path) {
  const auto parts = SplitPath(path);
  if (parts.empty()) return;
  Node* node = &root_;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto child = node->children.find(parts[i]);
    if (child == node->children.end()) return;
    node = child->second.get();
  }
  const auto last = node->children.find(parts.back());
  if (last != node->children.end()) node->children.erase(last);
}

const Node* Vfs::Find(std::string_view path) const {
  const Node* node = &root_;
  for (const std::string_view part : SplitPath(path)) {
    const auto child = node->children.find(part);
    if (child == node->children.end()) return nullptr;
    node = child->second.get();
  }
  return node;
}

std::string Vfs::Resolve(std::string_view path, bool follow_last) const {
  constexpr int kMaxLinks = 40;
  int links = 0;
  std::vector<std::string> done;
  std::vector<std::string> todo;  // reversed
  for (const std::string_view part : SplitPath(path)) todo.insert(todo.begin(), std::string(part));
  while (!todo.empty()) {
    const std::string part = todo.back();
    todo.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    const Node* node = Find(Join(done));
    if (node == nullptr) return "";
    if (node->kind != NodeKind::kLink || (todo.empty() && !follow_last)) continue;
    if (++links > kMaxLinks) return "";
    done.pop_back();
    if (node->target.starts_with('/')) done.clear();
    auto target = SplitPath(node->target);
    std::reverse(target.begin(), target.end());
    for (const std::string_view name : target) todo.emplace_back(name);
  }
  return Join(done);
}

}  // namespace vfio_agent::sim
