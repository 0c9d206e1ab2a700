#include "sysfs/device/mdev.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "sysfs/device/config_space.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kParent[] = "0000:3b:00.0";
constexpr char kUuid[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

void AddType(FakeTree& fake, const std::string& id, const std::string& name,
             const std::string& available, const std::string& api = "vfio-pci") {
  const std::string dir = "mdev_supported_types/" + id + "/";
  if (!name.empty()) fake.Write(FakeTree::Of(kParent, dir + "name"), name + "\n");
  fake.Write(FakeTree::Of(kParent, dir + "available_instances"), available + "\n");
  fake.Write(FakeTree::Of(kParent, dir + "device_api"), api + "\n");
}

void AddParent(FakeTree& fake) {
  fake.Add({.address = kParent, .driver = "nvidia", .group = 5});
  fake.Link("sys/class/mdev_bus/0000:3b:00.0", "sys/bus/pci/devices/0000:3b:00.0");
}

void AddInstance(FakeTree& fake, const std::string& uuid) {
  const std::string dir = FakeTree::Of(kParent, uuid) + "/";
  fake.Write(dir + "remove", "");
  fake.Link(dir + "mdev_type", FakeTree::Of(kParent, "mdev_supported_types/nvidia-222"));
  fake.Link(dir + "iommu_group", "sys/kernel/iommu_groups/40");
  fake.Link(dir + "driver", "sys/bus/mdev/drivers/nvidia-vgpu-vfio");
  fake.Link("sys/bus/mdev/devices/" + uuid, "sys/devices/pci0000:3b/0000:3b:00.0/" + uuid);
}

MdevFacts ReadMdevs(const FakeTree& fake, const AskDrivers& ask = {}) {
  const Tree tree = fake.Open();
  MdevFacts facts = ListMdevs(tree);
  std::vector<DriverFile> files;
  AddMdevFiles(facts, {}, files);
  FillMdevs(ask ? ask(files) : AskInTurn(tree)(files), facts);
  return facts;
}

std::string TypeFile(const std::string& name) {
  return std::string("sys/bus/pci/devices/") + kParent + "/mdev_supported_types/" + name;
}

TEST_CASE("types of a parent come with name and room; those of other buses do not", "[sysfs]") {
  FakeTree fake;
  AddParent(fake);
  AddType(fake, "nvidia-222", "GRID T4-1Q", "16");
  AddType(fake, "nvidia-225", "", "nonsense");
  AddType(fake, "i915-9", "other", "1", "vfio-ccw");
  const MdevFacts facts = ReadMdevs(fake);
  REQUIRE(facts.parents.size() == 1);
  CHECK(facts.parents[0] ==
        MdevParent{At(kParent),
                   {{"nvidia-222", "GRID T4-1Q", 16}, {"nvidia-225", "", std::nullopt}}});
  CHECK(FindMdevType(facts.parents[0], "nvidia-222") == &facts.parents[0].types[0]);
  CHECK(FindMdevType(facts.parents[0], "GRID T4-1Q") == &facts.parents[0].types[0]);
  CHECK(FindMdevType(facts.parents[0], "GRID T4-2Q") == nullptr);
}

TEST_CASE("an instance knows its parent, type, group and driver", "[sysfs]") {
  FakeTree fake;
  AddParent(fake);
  AddType(fake, "nvidia-222", "GRID T4-1Q", "15");
  AddInstance(fake, kUuid);
  const MdevFacts facts = ReadMdevs(fake);
  REQUIRE(facts.instances.size() == 1);
  const MdevInstance& mdev = facts.instances[0];
  CHECK(mdev.uuid == kUuid);
  CHECK(mdev.parent == At(kParent));
  CHECK(mdev.type == "nvidia-222");
  CHECK(mdev.group == 40);
  CHECK(mdev.driver.value_or("none") == "nvidia-vgpu-vfio");
  CHECK_FALSE(mdev.cdev);
  CHECK(FindMdev(facts, kUuid) == &facts.instances[0]);
}

TEST_CASE("an instance below something else than a PCI function has no parent", "[sysfs]") {
  FakeTree fake;
  AddParent(fake);
  fake.Link(std::string("sys/bus/mdev/devices/") + kUuid,
            std::string("sys/devices/virtual/mtty/mtty/") + kUuid);
  const MdevFacts facts = ReadMdevs(fake);
  REQUIRE(facts.instances.size() == 1);
  CHECK(facts.instances[0] == MdevInstance{.uuid = kUuid});
}

TEST_CASE("of a parent whose driver does not answer nothing is told but the file", "[sysfs]") {
  FakeTree fake;
  AddParent(fake);
  AddType(fake, "nvidia-222", "GRID T4-1Q", "15");
  AddType(fake, "nvidia-225", "GRID T4-4Q", "4");
  AddInstance(fake, kUuid);
  const MdevFacts before = ReadMdevs(fake);
  const std::string hung = TypeFile("nvidia-225/available_instances");
  MdevFacts now = ReadMdevs(fake, [&](const std::vector<DriverFile>& files) {
    DriverTexts texts = AskInTurn(fake.Open())(files);
    texts[hung] = Silence(hung);
    return texts;
  });
  CHECK(now.parents == std::vector<MdevParent>{{.address = At(kParent), .silent = hung}});
  CHECK(now.instances == before.instances);
  SECTION("what it told before stays, without room for more") {
    KeepMdevs(before, now);
    CHECK(now.parents[0].silent == hung);
    CHECK(now.parents[0].types ==
          std::vector<MdevType>{{.id = "nvidia-222", .name = "GRID T4-1Q"},
                                {.id = "nvidia-225", .name = "GRID T4-4Q"}});
  }
  SECTION("of one that answers nothing is kept") {
    MdevFacts later = before;
    later.parents[0].types.pop_back();
    const MdevFacts told = later;
    KeepMdevs(before, later);
    CHECK(later == told);
  }
  SECTION("where a snapshot has that the read did not return, it is so there too") {
    const MdevFacts copied = ReadMdevs(fake, [&](const std::vector<DriverFile>& files) {
      DriverTexts texts = AskInTurn(fake.Open())(files);
      texts[hung] = ErrnoStatus(ETIMEDOUT, "read");
      return texts;
    });
    CHECK(copied.parents[0].silent == hung);
  }
}

TEST_CASE("functions of one card are asked together", "[sysfs]") {
  FakeTree fake;
  AddParent(fake);
  AddType(fake, "nvidia-222", "GRID T4-1Q", "15");
  std::vector<DriverFile> files;
  AddMdevFiles(ListMdevs(fake.Open()), {Vf(kParent, 5, "0000:3b:00.7")}, files);
  REQUIRE(files.size() == 3);
  CHECK(files[0] == DriverFile{At(kParent), At("0000:3b:00.7"), TypeFile("nvidia-222/device_api")});
}

TEST_CASE("a node without mediated devices or vGPUs has no driver that is asked", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = kParent, .driver = "nvidia", .group = 5});
  const Tree tree = fake.Open();
  ConfigReader config(tree);
  int asked = 0;
  const AskDrivers count = [&asked](const std::vector<DriverFile>& files) {
    ++asked;
    return AskNobody(files);
  };
  REQUIRE(TakeNodeFacts(tree, config, {}, count).ok());
  CHECK(asked == 0);
  fake.Link("sys/class/mdev_bus/0000:3b:00.0", "sys/bus/pci/devices/0000:3b:00.0");
  AddType(fake, "nvidia-222", "GRID T4-1Q", "15");
  const auto facts = TakeNodeFacts(tree, config, {}, count);
  REQUIRE(facts.ok());
  CHECK(asked == 1);
  CHECK_FALSE(facts->mdev.parents.at(0).silent.empty());
}

TEST_CASE("what is no uuid is skipped with a note, and reaches no terminal as it is", "[sysfs]") {
  FakeTree fake;
  AddParent(fake);
  fake.Link("sys/bus/mdev/devices/a\x1b[31m", "sys/x");
  AddType(fake, "nvidia-222", "GRID\x1bT4\xff", "1");
  const NodeFacts facts = fake.Facts();
  CHECK(facts.mdev.instances.empty());
  CHECK(facts.skipped == std::vector<std::string>{"sys/bus/mdev/devices/a?[31m: no uuid"});
  CHECK(facts.mdev.parents[0].types[0].name == "GRID?T4?");
}

TEST_CASE("a tree with far too many instances is read up to a limit", "[sysfs]") {
  FakeTree fake;
  for (int i = 0; i < 8200; ++i) {
    fake.Link(absl::StrFormat("sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-%012x", i), "sys/x");
  }
  const MdevFacts facts = ReadMdevs(fake);
  CHECK(facts.instances.size() == 8192);
  CHECK(facts.skipped == std::vector<std::string>{"sys/bus/mdev/devices: 8 of 8200 entries"});
}

}  // namespace
}  // namespace vfio_agent
