// The judge of answers, itself: each objection on a tree of files.
#include "test/kubevirt/guest.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "test/support/fake_tree.h"

namespace vfio_agent::kubevirt {
namespace {

namespace fs = std::filesystem;
using Sentences = std::vector<std::string>;

constexpr char kAddress[] = "0000:01:00.0";

// A GPU and its audio function in group 7, both on vfio-pci, with a cdev for the GPU.
class Root {
 public:
  Root() {
    Bind(kAddress, "vfio-pci");
    Bind("0000:01:00.1", "vfio-pci");
    fake_.Write("dev/vfio/vfio", "");
    fake_.Write("dev/vfio/7", "");
    fake_.Write("dev/vfio/devices/vfio0", "");
    fs::create_directories(Device(kAddress) / "vfio-dev/vfio0");
  }
  // "" for no driver.
  void Bind(const std::string& address, const std::string& driver) {
    fs::create_directories(Device(address));
    fs::create_directories(path() + "/sys/kernel/iommu_groups/7/devices/" + address);
    fs::remove(Device(address) / "iommu_group");
    fs::create_symlink("../../../../kernel/iommu_groups/7", Device(address) / "iommu_group");
    fs::remove(Device(address) / "driver");
    if (!driver.empty()) {
      fs::create_symlink("../../drivers/" + driver, Device(address) / "driver");
    }
  }
  void Remove(const std::string& file) { fs::remove(path() + file); }
  std::string path() const { return fake_.root().string(); }

 private:
  fs::path Device(const std::string& address) const {
    return fake_.root() / "sys/bus/pci/devices" / address;
  }
  FakeTree fake_;
};

v1beta1::ContainerAllocateResponse AnswerWith(const std::vector<std::string>& nodes) {
  v1beta1::ContainerAllocateResponse answer;
  (*answer.mutable_envs())["PCI_RESOURCE_A_B"] = kAddress;
  for (const std::string& path : nodes) {
    v1beta1::DeviceSpec& node = *answer.add_devices();
    node.set_host_path(path);
    node.set_container_path(path);
    node.set_permissions("mrw");
  }
  return answer;
}

v1beta1::ContainerAllocateResponse GoodAnswer() {
  return AnswerWith({"/dev/vfio/vfio", "/dev/vfio/7", "/dev/vfio/devices/vfio0"});
}

Sentences Judge(const Root& root, const v1beta1::ContainerAllocateResponse& answer) {
  return Objections(root.path(), answer, {{.alias = "gpu-1", .address = kAddress}});
}

TEST_CASE("an answer with all that the machine needs, and no more, meets no objection",
          "[kubevirt]") {
  CHECK(Judge(Root(), GoodAnswer()) == Sentences{});
}

TEST_CASE("T17: an answer without the container's node is objected to", "[kubevirt]") {
  CHECK(Judge(Root(), AnswerWith({"/dev/vfio/7", "/dev/vfio/devices/vfio0"})) ==
        Sentences{"/dev/vfio/vfio is needed and not handed out"});
}

TEST_CASE("a node that is not there, twice, not needed or absent from the answer is objected to",
          "[kubevirt]") {
  Root root;
  CHECK(Judge(root, AnswerWith({"/dev/vfio/vfio", "/dev/vfio/7"})) ==
        Sentences{"/dev/vfio/devices/vfio0 is needed and not handed out"});
  auto answer = GoodAnswer();
  *answer.add_devices() = answer.devices(0);
  CHECK(Judge(root, answer) == Sentences{"/dev/vfio/vfio is named twice"});
  answer = AnswerWith({"/dev/vfio/vfio", "/dev/vfio/7", "/dev/vfio/devices/vfio0", "/dev/vfio/8"});
  CHECK(Judge(root, answer) ==
        Sentences{"/dev/vfio/8 is not there", "/dev/vfio/8 is handed out and not needed"});
  root.Remove("/dev/vfio/7");
  CHECK(Judge(root, GoodAnswer()) == Sentences{"/dev/vfio/7 is not there"});
}

TEST_CASE("another path in the container, other permissions and mounts are objected to",
          "[kubevirt]") {
  auto answer = GoodAnswer();
  answer.mutable_devices(1)->set_container_path("/dev/gpu");
  answer.mutable_devices(2)->set_permissions("r");
  answer.add_mounts()->set_host_path("/run/x");
  CHECK(Judge(Root(), answer) == Sentences{"/dev/vfio/7 is elsewhere in the container",
                                           "/dev/vfio/devices/vfio0 has permissions r",
                                           "something is mounted: /run/x"});
}

TEST_CASE("a member of the group on a host driver is objected to, one without a driver is not",
          "[kubevirt]") {
  Root root;
  root.Bind("0000:01:00.1", "");
  root.Bind("0000:00:01.0", "pcieport");
  CHECK(Judge(root, GoodAnswer()) == Sentences{});
  root.Bind("0000:01:00.1", "snd_hda_intel");
  CHECK(Judge(root, GoodAnswer()) == Sentences{"group 7: 0000:01:00.1 is on snd_hda_intel"});
}

TEST_CASE("a device that is not on a vfio driver is objected to", "[kubevirt]") {
  Root root;
  root.Bind(kAddress, "");
  CHECK(Judge(root, GoodAnswer()) == Sentences{"0000:01:00.0 is on ''"});
}

TEST_CASE("R44: a variable of another kind is objected to", "[kubevirt]") {
  auto answer = GoodAnswer();
  (*answer.mutable_envs())["MDEV_PCI_RESOURCE_A_B"] = kAddress;
  CHECK(Judge(Root(), answer) == Sentences{"the variable MDEV_PCI_RESOURCE_A_B", "2 variables"});
}

}  // namespace
}  // namespace vfio_agent::kubevirt
