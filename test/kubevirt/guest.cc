#include "test/kubevirt/guest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace vfio_agent::kubevirt {
namespace {

namespace fs = std::filesystem;
using Sentences = std::vector<std::string>;

constexpr char kContainerNode[] = "/dev/vfio/vfio";

// The last part of where a link leads; "" where there is none.
std::string LinkName(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? "" : target.filename().string();
}

std::vector<std::string> EntriesOf(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// Drivers under which the kernel lets a member of a guest's group be.
bool IsHarmless(const std::string& driver) {
  return driver.empty() || driver == "pci-stub" || driver == "pcieport" ||
         driver.find("vfio") != std::string::npos;
}

class Judge {
 public:
  explicit Judge(std::string root) : root_(std::move(root)) {}

  void CheckDevice(const std::string& address) {
    const std::string driver = LinkName(Device(address) / "driver");
    if (driver.find("vfio") == std::string::npos) Object(address + " is on '" + driver + "'");
    const std::string group = LinkName(Device(address) / "iommu_group");
    if (group.empty()) return Object(address + " is in no IOMMU group");
    needed_.insert("/dev/vfio/" + group);
    for (const std::string& member :
         EntriesOf(root_ / "sys/kernel/iommu_groups" / group / "devices")) {
      CheckMember(group, member);
    }
  }

  // A region of Extended GPU Memory is needed by who has all of the GPUs that sysfs lists of it.
  void CheckMemory(const std::vector<GuestDevice>& devices) {
    for (const std::string& region : EntriesOf(root_ / "sys/class/egm")) {
      std::set<std::string> gpus;
      std::ifstream file(root_ / "sys/class/egm" / region / "gpu_devices");
      for (std::string line; std::getline(file, line);) gpus.insert(line);
      for (const std::string& entry : EntriesOf(root_ / "sys/class/egm" / region)) {
        if (IsPciAddress(entry)) gpus.insert(entry);
      }
      for (const GuestDevice& device : devices) gpus.erase(device.address);
      if (gpus.empty()) needed_.insert("/dev/" + region);
    }
  }

  void CheckNodes(const v1beta1::ContainerAllocateResponse& answer) {
    needed_.insert(kContainerNode);
    std::set<std::string> named;
    for (const v1beta1::DeviceSpec& node : answer.devices()) {
      const std::string& path = node.host_path();
      if (!named.insert(path).second) Object(path + " is named twice");
      if (node.container_path() != path) Object(path + " is elsewhere in the container");
      if (node.permissions() != "mrw") Object(path + " has permissions " + node.permissions());
      if (!Exists(path)) Object(path + " is not there");
      if (!needed_.contains(path)) Object(path + " is handed out and not needed");
    }
    for (const std::string& path : needed_) {
      if (!named.contains(path)) Object(path + " is needed and not handed out");
    }
  }

  void CheckRest(const v1beta1::ContainerAllocateResponse& answer) {
    if (answer.mounts_size() > 0) Object("something is mounted: " + answer.mounts(0).host_path());
    int resources = 0;
    for (const auto& entry : answer.envs()) {
      if (entry.first.starts_with("VFIO_AGENT_PAIRS_")) continue;  // read by nobody of KubeVirt
      if (!entry.first.starts_with("PCI_RESOURCE_")) Object("the variable " + entry.first);
      ++resources;
    }
    if (resources != 1) Object(std::to_string(resources) + " variables");
  }

  Sentences objections() && { return std::move(objections_); }

 private:
  fs::path Device(const std::string& address) const {
    return root_ / "sys/bus/pci/devices" / address;
  }
  bool Exists(const std::string& path) const {
    std::error_code error;
    return fs::exists(fs::symlink_status(root_ / path.substr(1), error));
  }

  // A cdev is needed where its node exists; there are kernels that have the name only.
  void CheckMember(const std::string& group, const std::string& member) {
    const std::string driver = LinkName(Device(member) / "driver");
    if (!IsHarmless(driver)) Object("group " + group + ": " + member + " is on " + driver);
    for (const std::string& cdev : EntriesOf(Device(member) / "vfio-dev")) {
      const std::string path = "/dev/vfio/devices/" + cdev;
      if (Exists(path)) needed_.insert(path);
    }
  }

  void Object(std::string sentence) { objections_.push_back(std::move(sentence)); }

  fs::path root_;
  std::set<std::string> needed_;
  Sentences objections_;
};

}  // namespace

Variables VariablesOf(const v1beta1::ContainerAllocateResponse& answer) {
  return {answer.envs().begin(), answer.envs().end()};
}

std::vector<std::string> Objections(const std::string& root,
                                    const v1beta1::ContainerAllocateResponse& answer,
                                    const std::vector<GuestDevice>& devices) {
  Judge judge(root);
  for (const GuestDevice& device : devices) judge.CheckDevice(device.address);
  judge.CheckMemory(devices);
  judge.CheckNodes(answer);
  judge.CheckRest(answer);
  return std::move(judge).objections();
}

}  // namespace vfio_agent::kubevirt
