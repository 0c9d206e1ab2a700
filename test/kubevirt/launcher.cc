#include "test/kubevirt/launcher.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <set>

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent::kubevirt {
namespace {

// The addresses of one kind of variable for the items of one list.
class Pool {
 public:
  Pool(const char* prefix, const std::vector<Item>& items, const Variables& variables) {
    for (const Item& item : items) {
      const auto found = variables.find(prefix + VariableSuffix(item.resource));
      if (found == variables.end()) continue;
      left_[item.resource] = SplitVariable(found->second);
    }
  }

  // Two resources may name the same device, so it is taken from each.
  std::optional<std::string> Pop(const std::string& resource) {
    const auto found = left_.find(resource);
    if (found == left_.end() || found->second.empty()) return std::nullopt;
    std::string address = found->second.front();
    for (auto& entry : left_) std::erase(entry.second, address);
    return address;
  }

 private:
  std::map<std::string, std::vector<std::string>> left_;
};

absl::Status AddPci(const std::vector<Item>& items, const std::string& prefix, Pool pool,
                    std::vector<GuestDevice>& devices) {
  for (const Item& item : items) {
    const std::optional<std::string> address = pool.Pop(item.resource);
    if (!address) continue;
    if (!IsPciAddress(*address)) {
      return absl::FailedPreconditionError(absl::StrFormat("'%s' is no PCI address", *address));
    }
    devices.push_back({.alias = prefix + item.name, .address = *address});
  }
  return absl::OkStatus();
}

void AddOthers(const std::vector<Item>& items, const std::string& prefix, Pool pool,
               std::vector<GuestDevice>& devices) {
  for (const Item& item : items) {
    const std::optional<std::string> address = pool.Pop(item.resource);
    if (address) devices.push_back({.alias = prefix + item.name, .address = *address});
  }
}

absl::Status CheckCount(const char* list, size_t wanted, size_t found) {
  if (wanted == found) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the number of %s (%d) does not match the number of devices (%d)", list, wanted, found));
}

absl::StatusOr<std::vector<GuestDevice>> Gpus(const Machine& machine, const Variables& variables) {
  std::vector<GuestDevice> devices;
  RETURN_IF_ERROR(
      AddPci(machine.gpus, "gpu-", Pool("PCI_RESOURCE_", machine.gpus, variables), devices));
  AddOthers(machine.gpus, "gpu-", Pool("MDEV_PCI_RESOURCE_", machine.gpus, variables), devices);
  RETURN_IF_ERROR(CheckCount("gpus", machine.gpus.size(), devices.size()));
  return devices;
}

absl::StatusOr<std::vector<GuestDevice>> HostDevices(const Machine& machine,
                                                     const Variables& variables) {
  const std::vector<Item>& items = machine.host_devices;
  std::vector<GuestDevice> devices;
  RETURN_IF_ERROR(AddPci(items, "hostdevice-", Pool("PCI_RESOURCE_", items, variables), devices));
  AddOthers(items, "hostdevice-", Pool("MDEV_PCI_RESOURCE_", items, variables), devices);
  AddOthers(items, "hostdevice-", Pool("USB_RESOURCE_", items, variables), devices);
  RETURN_IF_ERROR(CheckCount("hostDevices", items.size(), devices.size()));
  return devices;
}

}  // namespace

std::string VariableSuffix(std::string_view resource) {
  std::string suffix;
  for (const char c : resource) {
    if (c == '/' || c == '.') {
      suffix += '_';
    } else {
      suffix += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return suffix;
}

bool IsPciAddress(std::string_view text) {
  static const std::regex kAddress("[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]",
                                   std::regex::extended);
  return std::regex_match(text.begin(), text.end(), kAddress);
}

std::vector<std::string> SplitVariable(std::string_view value) {
  if (value.ends_with(',')) value.remove_suffix(1);
  std::vector<std::string> items;
  if (value.empty()) return items;
  size_t start = 0;
  for (size_t comma = value.find(','); comma != std::string_view::npos;
       comma = value.find(',', start)) {
    items.emplace_back(value.substr(start, comma - start));
    start = comma + 1;
  }
  items.emplace_back(value.substr(start));
  return items;
}

Machine MachineWith(const std::string& resource, size_t count, bool gpus) {
  Machine machine;
  for (size_t i = 1; i <= count; ++i) {
    (gpus ? machine.gpus : machine.host_devices)
        .push_back({.name = absl::StrFormat("d%d", i), .resource = resource});
  }
  return machine;
}

absl::StatusOr<std::vector<GuestDevice>> StartMachine(const Machine& machine,
                                                      const Variables& variables) {
  ASSIGN_OR_RETURN(std::vector<GuestDevice> devices, Gpus(machine, variables));
  ASSIGN_OR_RETURN(const std::vector<GuestDevice> others, HostDevices(machine, variables));
  devices.insert(devices.end(), others.begin(), others.end());
  std::set<std::string> seen;
  for (const GuestDevice& device : devices) {
    if (seen.insert(device.address).second) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is there twice, as libvirt would say", device.address));
  }
  return devices;
}

}  // namespace vfio_agent::kubevirt
