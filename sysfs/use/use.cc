#include "sysfs/use/use.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/device/device_walk.h"
#include "sysfs/device/mdev.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"
#include "sysfs/use/display_use.h"
#include "sysfs/use/network_use.h"
#include "sysfs/use/process_use.h"
#include "sysfs/use/storage_use.h"

namespace vfio_agent {
namespace {

constexpr size_t kMaxUsbShown = 6;

// What is the same for all functions: read once.
struct Host {
  HostNetwork network;
  HostStorage storage;
  HostDisplay display;
};

void Append(std::vector<Use>& uses, std::vector<Use> more) {
  std::ranges::move(more, std::back_inserter(uses));
}

// "1-2 (046d:c31c)": the ids, for reading a device's texts waits for its lock.
std::string UsbName(const Tree& tree, const std::string& dir) {
  const absl::StatusOr<std::string> vendor = tree.ReadText(dir + "/idVendor");
  const absl::StatusOr<std::string> product = tree.ReadText(dir + "/idProduct");
  if (!vendor.ok() || !product.ok()) return std::string(NameOf(dir));
  return absl::StrFormat("%s (%s:%s)", NameOf(dir), *vendor, *product);
}

void AddUsb(const Tree& tree, const Below& below, std::vector<Use>& uses) {
  if (below.usb_devices.empty()) return;
  std::vector<std::string> names;
  for (const std::string& dir : below.usb_devices) {
    if (names.size() == kMaxUsbShown) {
      names.push_back(absl::StrFormat("and %d more", below.usb_devices.size() - kMaxUsbShown));
      break;
    }
    names.push_back(UsbName(tree, dir));
  }
  uses.push_back(
      {.kind = UseKind::kProcess,
       .text = absl::StrFormat("has USB devices attached: %s", absl::StrJoin(names, ", ")),
       .remedy = "unplug them, or plug them into another controller"});
}

void AddManaged(const PciAddress& device, const Below& below, std::vector<Use>& uses) {
  if (!below.mediated.empty()) {
    const bool own = std::ranges::all_of(
        below.mediated, [](const std::string& dir) { return HasOwnMark(NameOf(dir)); });
    uses.push_back({.kind = UseKind::kManager,
                    .text = absl::StrFormat("has %d mdev instance%s (%s)", below.mediated.size(),
                                            below.mediated.size() == 1 ? "" : "s",
                                            NameOf(below.mediated.front())),
                    .remedy = own ? "vfio-agent release " + device.ToString()
                                  : "remove the mediated devices first (mdevctl stop)"});
  }
  for (const std::string& domain : below.domains) {
    uses.push_back({.kind = UseKind::kManager,
                    .text = absl::StrFormat("carries the functions of another PCI domain (%s)",
                                            NameOf(domain)),
                    .remedy = "leave it to the host, or switch VMD off in the firmware"});
  }
  if (!below.whole) {
    uses.push_back({.kind = UseKind::kProcess,
                    .text = "has directories below it that could not be looked through: what it "
                            "is used for is not known"});
  }
}

// All uses but those by processes. Without a driver nothing can use a function.
std::vector<Use> UsesOf(const Tree& tree, const PciDevice& device, const Below& below,
                        const Host& host) {
  std::vector<Use> uses;
  if (!device.driver) return uses;
  Append(uses, NetworkUses(tree, device, below, host.network));
  Append(uses, StorageUses(tree, below, host.storage));
  Append(uses, ConsoleUses(below, host.display));
  AddUsb(tree, below, uses);
  AddManaged(device.address, below, uses);
  return uses;
}

// The nodes of all devices and groups in one list, for one walk over the processes.
class Search {
 public:
  void Add(std::vector<DeviceNode> nodes) {
    std::ranges::move(nodes, std::back_inserter(nodes_));
    ends_.push_back(nodes_.size());
  }

  bool Run(const Tree& tree) {
    NodeHolders found = FindHolders(tree, nodes_);
    held_ = std::move(found.by_node);
    return found.complete;
  }

  // Of the nodes that the i-th call of Add() brought.
  std::vector<std::vector<Holder>> Held(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {held_.begin() + static_cast<ptrdiff_t>(begin),
            held_.begin() + static_cast<ptrdiff_t>(ends_[i])};
  }

 private:
  std::vector<DeviceNode> nodes_;
  std::vector<size_t> ends_;
  std::vector<std::vector<Holder>> held_;
};

std::vector<Holder> Unite(const std::vector<std::vector<Holder>>& lists) {
  std::vector<Holder> holders;
  for (const std::vector<Holder>& list : lists) {
    for (const Holder& holder : list) {
      if (std::ranges::count(holders, holder.pid, &Holder::pid) == 0) holders.push_back(holder);
    }
  }
  return holders;
}

}  // namespace

UseFacts ReadUse(const Tree& tree, const NodeFacts& facts, const std::vector<PciAddress>& devices,
                 const std::vector<int>& groups) {
  const Host host{.network = ReadHostNetwork(tree),
                  .storage = ReadHostStorage(tree),
                  .display = ReadHostDisplay(tree)};
  UseFacts uses;
  Search search;
  for (const PciAddress& address : devices) {
    const PciDevice* const device = FindDevice(facts, address);
    const Below below = device && device->driver ? WalkBelow(tree, address) : Below();
    uses.devices[address] = device ? UsesOf(tree, *device, below, host) : std::vector<Use>();
    search.Add(device && device->driver ? FindDeviceNodes(tree, address, below)
                                        : std::vector<DeviceNode>());
  }
  for (const int group : groups) search.Add(GroupNodes(tree, facts, group));
  uses.processes_known = search.Run(tree);
  size_t at = 0;
  for (const PciAddress& address : devices) {
    Append(uses.devices[address], ProcessUses(address, search.Held(at++)));
  }
  for (const int group : groups) {
    std::vector<Holder> holders = Unite(search.Held(at++));
    if (!holders.empty()) uses.groups[group] = std::move(holders);
  }
  return uses;
}

}  // namespace vfio_agent
