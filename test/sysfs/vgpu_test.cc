#include "sysfs/device/vgpu.h"

#include <catch2/catch.hpp>

#include "sysfs/device/config_space.h"
#include "sysfs/node_facts.h"
#include "sysfs/tree.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kVf[] = "0000:41:00.4";
constexpr char kTable[] = "ID    : vGPU Name\n1147  : NVIDIA L40S-1Q\n1145  : NVIDIA L40S-1B\n";

struct Card {
  Card() { fake.Add({.address = kVf, .driver = "nvidia", .group = 5}); }
  void Type(const std::string& current, const std::string& creatable = kTable) {
    fake.Write(FakeTree::Of(kVf, "nvidia/current_vgpu_type"), current);
    fake.Write(FakeTree::Of(kVf, "nvidia/creatable_vgpu_types"), creatable);
  }
  VgpuFacts Read(const std::string& hung = "") {
    const Tree tree = fake.Open();
    VgpuFacts facts = ListVgpus(tree, {vf});
    std::vector<DriverFile> files;
    AddVgpuFiles(facts, files);
    DriverTexts texts = AskInTurn(tree)(files);
    if (!hung.empty()) texts[hung] = Silence(hung);
    FillVgpus(texts, facts);
    return facts;
  }

  FakeTree fake;
  PciDevice vf = Vf(kVf, 5, "0000:41:00.0");
};

TEST_CASE("a virtual function tells its type and what it could be, sorted by number", "[sysfs]") {
  Card card;
  card.Type("1145\n");
  const VgpuFacts facts = card.Read();
  REQUIRE(facts.functions.size() == 1);
  CHECK(facts.functions[0] == VgpuFunction{At(kVf),
                                           At("0000:41:00.0"),
                                           Fact<int>(1145),
                                           {{1145, "NVIDIA L40S-1B"}, {1147, "NVIDIA L40S-1Q"}}});
  CHECK(facts.skipped.empty());
  CHECK(FindVgpu(facts, At(kVf)) == &facts.functions[0]);
  CHECK(FindVgpu(facts, At("0000:41:00.5")) == nullptr);
}

TEST_CASE("only NVIDIA's virtual functions that have a driver are looked at", "[sysfs]") {
  Card card;
  card.Type("0\n");
  REQUIRE(card.Read().functions.size() == 1);
  SECTION("no driver") { card.vf.driver.reset(); }
  SECTION("another vendor") { card.vf.vendor = 0x15b3; }
  SECTION("no virtual function") { card.vf.physfn.reset(); }
  CHECK(card.Read().functions.empty());
}

TEST_CASE("a driver without vGPUs has no such directory, which is no error", "[sysfs]") {
  Card card;
  CHECK(card.Read() == VgpuFacts{});
}

TEST_CASE("a function whose driver does not answer has the type that it had", "[sysfs]") {
  Card card;
  card.Type("1145\n");
  const VgpuFacts before = card.Read();
  const std::string dir = std::string("sys/bus/pci/devices/") + kVf + "/nvidia/";
  SECTION("for its type") {
    VgpuFacts now = card.Read(dir + "current_vgpu_type");
    CHECK(now.functions.at(0).current.unknown());
    CHECK(now.functions[0].silent == dir + "current_vgpu_type");
    CHECK(now.skipped.empty());
    KeepVgpus(before, now);
    CHECK(now.functions[0].last == 1145);
    VgpuFacts next = card.Read(dir + "current_vgpu_type");
    KeepVgpus(now, next);
    CHECK(next.functions[0].last == 1145);
  }
  SECTION("for what it could be") {
    VgpuFacts now = card.Read(dir + "creatable_vgpu_types");
    CHECK(now.functions.at(0).current.is(1145));
    CHECK(now.functions[0].silent == dir + "creatable_vgpu_types");
    CHECK(now.functions[0].creatable.empty());
    KeepVgpus(before, now);
    CHECK(now.functions[0].creatable == before.functions[0].creatable);
  }
}

TEST_CASE("a full card lists the heading alone", "[sysfs]") {
  Card card;
  card.Type("0\n", "ID    : vGPU Name\n");
  CHECK(card.Read().functions.at(0).creatable.empty());
  CHECK(card.Read().skipped.empty());
}

TEST_CASE("a type that is no number is not known, and what is odd is told", "[sysfs]") {
  Card card;
  card.Type("lots\n", "1145  : a\x1b[31mb\n-3 : x\n7 :\nnonsense\n");
  const VgpuFacts facts = card.Read();
  CHECK(facts.functions.at(0).current.unknown());
  CHECK(facts.functions.at(0).creatable == std::vector<VgpuType>{{1145, "a?[31mb"}});
  CHECK(facts.skipped.size() == 4);
}

TEST_CASE("a type's name that is no ASCII is made printable: JSON has to take it", "[sysfs]") {
  Card card;
  card.Type("0\n", "1145  : L40S\xff\xc3 1B\n");
  CHECK(card.Read().functions.at(0).creatable.at(0).name == "L40S\?\? 1B");
}

TEST_CASE("a table that does not end is bounded", "[sysfs]") {
  std::string text;
  for (int id = 1; id < 2000; ++id)
    text += std::to_string(id) + " : " + std::string(500, 'x') + "\n";
  std::vector<std::string> skipped;
  const std::vector<VgpuType> types = ParseVgpuTypes(text, "there", skipped);
  CHECK(types.size() == 256);
  CHECK(types[0].name.size() == 128);
  CHECK(skipped.size() == 16);
}

}  // namespace
}  // namespace vfio_agent
