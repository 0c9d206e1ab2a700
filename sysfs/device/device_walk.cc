#include "sysfs/device/device_walk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/device/mdev.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// SAS disks behind expanders stand eleven levels below their controller.
constexpr int kMaxDepth = 16;
constexpr size_t kMaxDirectories = 20'000;
// Large, and nothing of interest in them.
constexpr std::array<std::string_view, 4> kBoring = {"power", "queues", "statistics", "msi_irqs"};

bool Has(const std::vector<Entry>& entries, std::string_view name) {
  return std::ranges::any_of(entries, [name](const Entry& e) { return e.name == name; });
}

// "pci10000:00": a host bridge.
bool IsDomain(std::string_view name) { return name.starts_with("pci") && name.find(':') < 13; }

// "nvme0c1n2" is a path, over controller 1, of the disk nvme0n2; "" for other names.
std::string HeadOf(const std::string& name) {
  const size_t controller = name.find('c');
  const size_t space = name.find('n', 1);
  if (!name.starts_with("nvme") || controller == std::string::npos || space == std::string::npos ||
      space < controller) {
    return "";
  }
  return name.substr(0, controller) + name.substr(space);
}

class Walk {
 public:
  explicit Walk(const Tree& tree) : tree_(tree) {}

  Below Run(const std::string& top) && {
    waiting_.emplace_back(top, 0);
    for (size_t seen = 0; !waiting_.empty(); ++seen) {
      const auto [path, depth] = std::move(waiting_.back());
      waiting_.pop_back();
      if (seen >= kMaxDirectories || depth > kMaxDepth) {
        below_.whole = false;
      } else {
        Enter(path, depth);
      }
    }
    Sort();
    return std::move(below_);
  }

 private:
  // Most entries are attributes: those are no directories.
  void Enter(const std::string& path, int depth) {
    const absl::StatusOr<TreeDir> dir = TreeDir::Open(tree_, path);
    const absl::StatusOr<std::vector<Entry>> entries =
        dir.ok() ? dir->List() : absl::StatusOr<std::vector<Entry>>(dir.status());
    if (!entries.ok()) {
      const int error = ErrnoOf(entries.status());
      if (error != ENOTDIR && error != ENOENT && error != ENODEV) below_.whole = false;
      return;
    }
    if (depth > 0 && !Note(path, depth, *entries)) return;
    for (const Entry& entry : *entries) {
      if (!entry.is_link && std::ranges::count(kBoring, std::string_view(entry.name)) == 0) {
        waiting_.emplace_back(path + "/" + entry.name, depth + 1);
      }
    }
  }

  // False where there is no reason to look further down.
  bool Note(const std::string& path, int depth, const std::vector<Entry>& entries) {
    const std::string_view name = NameOf(path), parent = ParentNameOf(path);
    if (PciAddress::Parse(name).ok()) return false;
    if (IsDomain(name)) return Keep(below_.domains, path);
    if (depth == 1 && IsUuid(name)) return Keep(below_.mediated, path);
    if (parent == "net") return Keep(below_.interfaces, path);
    if (parent == "infiniband") return Keep(below_.rdma, path);
    if (parent == "graphics" && name.starts_with("fb")) below_.framebuffers.push_back(path);
    if (Has(entries, "idVendor") && !name.starts_with("usb")) below_.usb_devices.push_back(path);
    if (Has(entries, "dev")) below_.nodes.push_back(path);
    if (IsBlock(path, entries)) NoteDisk(path, entries);
    return true;
  }

  static bool Keep(std::vector<std::string>& list, const std::string& path) {
    list.push_back(path);
    return false;
  }

  // NVMe disks stand directly below their controller, all others in a directory "block".
  bool IsBlock(const std::string& path, const std::vector<Entry>& entries) const {
    if (!Has(entries, "dev") && !Has(entries, "hidden")) return false;
    const absl::StatusOr<std::string> subsystem = tree_.ReadLinkName(path + "/subsystem");
    if (subsystem.ok()) return *subsystem == "block";
    return ParentNameOf(path) == "block" || Has(entries, "size");
  }

  void NoteDisk(const std::string& path, const std::vector<Entry>& entries) {
    const std::string head = Has(entries, "dev") ? "" : HeadOf(std::string(NameOf(path)));
    if (head.empty()) {
      below_.disks.push_back(path);
      return;
    }
    const std::string dir = absl::StrFormat("%s/%s", kBlockClassDir, head);
    below_.disks.push_back(dir);
    below_.nodes.push_back(dir);
    const absl::StatusOr<std::vector<std::string>> parts = tree_.List(dir);
    if (!parts.ok()) below_.whole = false;
    for (const std::string& part : parts.ok() ? *parts : std::vector<std::string>()) {
      if (!part.starts_with(head) || !tree_.Exists(dir + "/" + part + "/dev")) continue;
      below_.disks.push_back(dir + "/" + part);
      below_.nodes.push_back(dir + "/" + part);
    }
  }

  void Sort() {
    for (auto* list : {&below_.interfaces, &below_.rdma, &below_.disks, &below_.framebuffers,
                       &below_.usb_devices, &below_.mediated, &below_.domains, &below_.nodes}) {
      std::ranges::sort(*list);
    }
  }

  const Tree& tree_;
  std::vector<std::pair<std::string, int>> waiting_;
  Below below_;
};

}  // namespace

Below WalkBelow(const Tree& tree, const PciAddress& address) {
  return Walk(tree).Run(DeviceDir(address));
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view ParentNameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : NameOf(path.substr(0, slash));
}

}  // namespace vfio_agent
