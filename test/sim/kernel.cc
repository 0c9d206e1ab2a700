#include "test/sim/kernel.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"

namespace vfio_agent::sim {
namespace {

// The most that one write of a sysfs attribute takes.
constexpr size_t kPageBytes = 4096;

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c < ' ' || c > '~') {
      out += absl::StrFormat("\\x%02x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Kernel::Kernel(Machine machine) : machine_(std::move(machine)) {
  for (const Fault& fault : machine_.faults) faults_.Add(fault);
  std::unique_lock<std::mutex> lock(mutex_);
  const Caller nobody;
  Call call{.lock = lock, .caller = nobody};
  Boot(call);
}

void Kernel::Boot(Call& call) {
  ShowNode();
  for (const MachineDevice& facts : machine_.devices) {
    auto device = std::make_shared<Device>();
    device->facts = facts;
    devices_[facts.address] = std::move(device);
    if (!facts.parent.empty()) children_[facts.parent].push_back(facts.address);
  }
  if (machine_.vfio_pci == "loaded" || machine_.vfio_pci == "builtin") LoadDriver("vfio-pci");
  for (const MachineDevice& facts : machine_.devices) {
    if (facts.driver.empty()) continue;
    Driver& driver = LoadDriver(facts.driver);
    if (!driver.vfio) driver.ids.insert({facts.vendor, facts.device});
  }
  for (const std::string& name : machine_.drivers) LoadDriver(name);
  for (const MachineDevice& facts : machine_.devices) BootDevice(facts);
  for (const MachineDevice& facts : machine_.devices) {
    ShowPhysfnLinks(Find(facts.address));
    if (facts.sriov_num_vfs > 0) EnableVfs(Find(facts.address), facts.sriov_num_vfs, call);
  }
  for (const MachineProcess& process : machine_.processes) ShowProcess(process);
  ShowExtras();
}

void Kernel::BootDevice(const MachineDevice& facts) {
  const DevicePtr device = Find(facts.address);
  device->path = PathOf(facts);
  // A device found on a vfio driver was put there through driver_override, unless the file says
  // that the override is empty: then through ids given to the driver.
  if (facts.driver_override) {
    device->driver_override = *facts.driver_override;
  } else if (!facts.driver.empty() && drivers_.at(facts.driver).vfio) {
    device->driver_override = facts.driver;
  }
  if (!facts.present) return;
  device->present = true;
  ShowDevice(device);
  if (!facts.driver.empty()) {
    Driver& driver = drivers_.at(facts.driver);
    if (device->driver_override.empty()) driver.ids.insert({facts.vendor, facts.device});
    Attach(device, facts.driver);
  }
}

DevicePtr Kernel::Find(std::string_view address) {
  const auto found = devices_.find(address);
  return found == devices_.end() ? nullptr : found->second;
}

// The kernel takes one trailing newline off, and knows nothing of other spellings.
DevicePtr Kernel::FindWritten(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const DevicePtr device = Find(text);
  return device != nullptr && device->present ? device : nullptr;
}

int Kernel::StoreAt(const std::string& path, std::string_view text, Call& call) {
  const Node* const node = path.empty() ? nullptr : vfs_.Find(path);
  if (node == nullptr) return ENOENT;
  if (node->kind == NodeKind::kDirectory) return EISDIR;
  if (node->store == nullptr) return EACCES;
  if (text.empty()) return 0;       // never reaches the attribute
  const Store store = node->store;  // a copy: the file may go while its store runs
  return store(text.substr(0, kPageBytes), call);
}

int Kernel::Write(std::string_view path, std::string_view text, const Caller& caller) {
  std::unique_lock<std::mutex> lock(mutex_);
  Call call{.lock = lock, .caller = caller};
  const std::string resolved = vfs_.Resolve(path);
  const size_t entry = log_.size();
  log_.push_back({resolved.empty() ? std::string(path) : resolved, Escaped(text), "running"});
  const int error = StoreAt(resolved, text, call);
  log_[entry].result = ErrnoName(error);
  changed_.notify_all();
  return error;
}

Shown Kernel::Read(std::string_view path, const Caller& caller) {
  std::unique_lock<std::mutex> lock(mutex_);
  Call call{.lock = lock, .caller = caller};
  const std::string resolved = vfs_.Resolve(path);
  const Node* const node = resolved.empty() ? nullptr : vfs_.Find(resolved);
  if (node == nullptr) return {.error = ENOENT};
  if (node->kind == NodeKind::kDirectory) return {.error = EISDIR};
  if (node->kind == NodeKind::kCharacterDevice) return {.error = ENXIO};
  if (node->show == nullptr) return {.error = EACCES};
  const Show show = node->show;
  if (const int error = SufferRead(resolved, call)) return {.error = error};
  return show(call);
}

// The fault of the nearest device above: "read:numa_node", "read:nvidia/current_vgpu_type".
int Kernel::SufferRead(const std::string& path, Call& call) {
  for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string directory = path.substr(0, slash);
    const DevicePtr device = Find(directory.substr(directory.rfind('/') + 1));
    if (device == nullptr) continue;
    return std::max(Suffer(device, "read:" + path.substr(slash + 1), call), 0);
  }
  return 0;
}

Shown Kernel::ReadLink(std::string_view path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string resolved = vfs_.Resolve(path, false);
  const Node* const node = resolved.empty() ? nullptr : vfs_.Find(resolved);
  if (node == nullptr) return {.error = ENOENT};
  if (node->kind != NodeKind::kLink) return {.error = EINVAL};
  return {.error = 0, .text = node->target};
}

std::optional<Node> Kernel::Stat(std::string_view path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Node* const node = vfs_.Find(path);
  if (node == nullptr) return std::nullopt;
  Node copy{.kind = node->kind, .mode = node->mode, .size = node->size};
  copy.device_number = node->device_number;
  copy.target = node->target;
  return copy;
}

std::vector<std::string> Kernel::List(std::string_view path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  const std::string resolved = vfs_.Resolve(path);
  if (const Node* const node = vfs_.Find(resolved)) {
    for (const auto& child : node->children) names.push_back(child.first);
  }
  return names;
}

bool Kernel::Exists(std::string_view path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !vfs_.Resolve(path).empty();
}

void Kernel::Visit(const Visitor& visit) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Caller nobody;
  Call call{.lock = lock, .caller = nobody};
  const std::function<void(const std::string&, const Node&)> walk = [&](const std::string& path,
                                                                        const Node& node) {
    for (const auto& [name, child] : node.children) {
      std::string below = path;
      if (!below.empty()) below += '/';
      below += name;
      visit(below, *child, child->show == nullptr ? "" : child->show(call).text);
      walk(below, *child);
    }
  };
  walk("", vfs_.root());
}

void Kernel::ShutDown() {
  const std::lock_guard<std::mutex> lock(mutex_);
  shut_down_ = true;
  changed_.notify_all();
}

bool Kernel::quit_asked() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return quit_;
}

std::string Kernel::Log() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (size_t i = 0; i < log_.size(); ++i) {
    text += absl::StrFormat("%d %s=%s %s\n", i + 1, log_[i].path, log_[i].text, log_[i].result);
  }
  return text;
}

}  // namespace vfio_agent::sim
