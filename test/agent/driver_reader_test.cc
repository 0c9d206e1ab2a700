// Reading what drivers answer, while a driver does not.
#include "agent/work/driver_reader.h"

#include <cerrno>

#include "sysfs/clock.h"
#include "sysfs/status.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kA[] = "0000:3b:00.0";
constexpr char kB[] = "0000:5e:00.0";
constexpr char kHangs[] =
    "fault {device: '0000:3b:00.0', op: 'read:mdev_supported_types/nvidia-222/name', ";
constexpr char kMachine[] = R"(name: vgpu
devices:
- {address: "0000:3b:00.0", vendor: "10de", device: "1eb8", class: "030200", driver: nvidia,
   mdev_types: {nvidia-222: {name: GRID T4-1Q, instances: 4}}}
- {address: "0000:5e:00.0", vendor: "10de", device: "1eb8", class: "030200", driver: nvidia,
   mdev_types: {nvidia-222: {name: GRID T4-2Q, instances: 2}}}
)";

std::string FileOf(const std::string& card, const std::string& name) {
  return "sys/bus/pci/devices/" + card + "/mdev_supported_types/nvidia-222/" + name;
}

struct Cards {
  DriverTexts Read() {
    std::vector<DriverFile> files;
    for (const char* card : {kB, kA}) {
      const PciAddress address = *PciAddress::Parse(card);
      for (const char* name : {"device_api", "name", "available_instances"}) {
        files.push_back({address, address, FileOf(card, name)});
      }
    }
    return reader.Read(node.root(), files);
  }
  bool HasAll() {
    const DriverTexts texts = Read();
    return std::ranges::all_of(texts, [](const auto& entry) { return entry.second.ok(); });
  }

  Node node{Node::MachineText{kMachine}};
  DriverReader reader;
};

std::string SilentIn(const DriverTexts& texts, const std::string& path) {
  return SilentFile(path, texts.at(path).status());
}

TEST_CASE("what drivers answer is read by one child, errors as well", "[node]") {
  Cards cards;
  cards.node.Control(std::string(kHangs) + "errno: EIO}");
  const DriverTexts texts = cards.Read();
  CHECK(texts.size() == 6);
  CHECK(*texts.at(FileOf(kA, "available_instances")) == "4");
  CHECK(*texts.at(FileOf(kB, "name")) == "GRID T4-2Q");
  CHECK(ErrnoOf(texts.at(FileOf(kA, "name")).status()) == EIO);
  CHECK(cards.reader.answered());
}

TEST_CASE("a driver that is slow for a moment is waited for", "[node]") {
  Cards cards;
  cards.node.Control(std::string(kHangs) + "delay: 300ms, once: true}");
  CHECK(cards.HasAll());
  CHECK(cards.reader.answered());
}

TEST_CASE("a card that hangs keeps no other from being read, and is not asked before it answers",
          "[node]") {
  Cards cards;
  cards.node.Control(std::string(kHangs) + "block: forever, unkillable: true}");
  DriverTexts texts = cards.Read();
  CHECK_FALSE(cards.reader.answered());
  for (const char* name : {"device_api", "name", "available_instances"}) {
    CHECK(texts.at(FileOf(kB, name)).ok());
  }
  CHECK(*texts.at(FileOf(kA, "device_api")) == "vfio-pci");
  CHECK(SilentIn(texts, FileOf(kA, "name")) == FileOf(kA, "name"));
  CHECK(SilentIn(texts, FileOf(kA, "available_instances")) == FileOf(kA, "name"));
  const absl::Time before = MonotonicNow();
  for (int i = 0; i < 3; ++i) {
    texts = cards.Read();
    CHECK(texts.at(FileOf(kB, "name")).ok());
    CHECK(SilentIn(texts, FileOf(kA, "device_api")) == FileOf(kA, "name"));
  }
  CHECK(MonotonicNow() - before < absl::Seconds(5));
  cards.node.Control("clear-faults");
  cards.node.Control("release-blocked 0000:3b:00.0");
  CHECK(Eventually([&] { return cards.HasAll(); }, kLong));
  CHECK(cards.reader.answered());
}

TEST_CASE("a card that did not answer in time is left alone for a while, then asked again",
          "[node]") {
  Cards cards;
  cards.node.Control(std::string(kHangs) + "block: forever, once: true}");
  CHECK_FALSE(cards.HasAll());
  CHECK_FALSE(cards.HasAll());  // it would answer now
  CHECK(Eventually([&] { return cards.HasAll(); }, kLong));
}

TEST_CASE("a reader for all threads answers as one for the loop does", "[node]") {
  const Cards cards;
  const AskDrivers ask = AskWithDeadline(cards.node.root());
  const PciAddress address = *PciAddress::Parse(kB);
  const DriverTexts texts = ask({{address, address, FileOf(kB, "name")}});
  REQUIRE(texts.size() == 1);
  CHECK(*texts.begin()->second == "GRID T4-2Q");
}

}  // namespace
}  // namespace vfio_agent
