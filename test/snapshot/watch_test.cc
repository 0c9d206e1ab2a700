// Watch: a tree tells of its reads, and a record of another node answers as that node did.
#include "sysfs/watch.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "sysfs/device/config_space.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/use/holders.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

Tree Opened(const std::string& root, Recorder recorder = {}, const Replay& known = {}) {
  absl::StatusOr<Tree> tree = Tree::OpenRecorded(root, std::move(recorder), known);
  REQUIRE(tree.ok());
  return *std::move(tree);
}

TEST_CASE("a replay is read back as it was written", "[snapshot]") {
  Replay replay;
  replay.failures[{ReadKind::kText, "sys/a b"}] = ErrnoStatus(EIO, "read sys/a b");
  replay.failures[{ReadKind::kBytes, "sys/c"}] = absl::DataLossError("fewer than 64");
  replay.notes[{ReadKind::kNode, "proc/1/fd/2"}] = "c 195:0";
  const auto again = ParseReplay(ReplayToText(replay));
  REQUIRE(again.ok());
  CHECK(*again == replay);
  CHECK(ErrnoOf(again->failures.begin()->second) == EIO);
}

TEST_CASE("a replay that is not whole is none", "[snapshot]") {
  for (const char* text : {"failed\ttext\tsys/a\t5\n", "failed\tsmell\tsys/a\t5\t2\tx\n",
                           "failed\ttext\tsys/a\t0\t2\tx\n", "failed\ttext\tsys/a\t99\t2\tx\n",
                           "text\tsys/a\tb\n", "node\tproc/1/fd/2\n", "words\n"}) {
    CAPTURE(text);
    CHECK(absl::IsDataLoss(ParseReplay(text).status()));
    const ScratchDir dir;
    dir.Write(kReplayFile, text);
    CHECK(absl::IsDataLoss(Tree::Open(dir.path()).status()));
  }
}

TEST_CASE("a root without a record is not watched", "[snapshot]") {
  const ScratchDir dir;
  CHECK(Tree::Open(dir.path())->watch() == nullptr);
}

TEST_CASE("every way to read is told, with what came of it", "[snapshot]") {
  const ScratchDir dir;
  dir.Write("text", "one\n");
  fs::create_symlink("../target", dir.path() + "/link");
  std::vector<std::string> told;
  const Tree tree =
      Opened(dir.path(), {.end = [&told](const Reading& reading) {
               told.push_back(absl::StrFormat("%s %s %s %d", Name(reading.kind), reading.path,
                                              reading.text, ErrnoOf(reading.status)));
             }});
  CHECK(tree.ReadText("text").ok());
  CHECK(ReadProcText(tree, "text").ok());
  CHECK(tree.ReadLinkName("link").ok());
  CHECK_FALSE(tree.Exists("none"));
  CHECK_FALSE(tree.ReadText("none").ok());
  CHECK(tree.List("").ok() == false);
  const auto here = TreeDir::Open(tree, ".");
  REQUIRE(here.ok());
  CHECK(here->ReadText("text").ok());
  CHECK(here->ReadLinkName("link").ok());
  CHECK(here->List().ok());
  CHECK(told[0] == "text text one 0");
  CHECK(told[1] == "text text one\n 0");
  CHECK(told[2] == "link link ../target 0");
  CHECK(told[3] == "open none  2");
  CHECK(told[4] == "text none  2");
  REQUIRE(told.size() == 10);
  CHECK(told[6] == "open .  0");
  CHECK(told[7] == "text ./text one 0");
  CHECK(told[8] == "link ./link ../target 0");
  CHECK_THAT(told[9], Catch::Contains("@link\n") && Catch::Contains("text\n"));
}

TEST_CASE("what could not be read there cannot be read here, in the same words", "[snapshot]") {
  const ScratchDir dir;
  dir.Write("attribute", "1\n");
  Replay replay;
  replay.failures[{ReadKind::kText, "attribute"}] = ErrnoStatus(EACCES, "open attribute");
  replay.failures[{ReadKind::kText, "./attribute"}] = ErrnoStatus(EIO, "read attribute");
  dir.Write(kReplayFile, ReplayToText(replay));
  const Tree tree = Opened(dir.path());
  CHECK(tree.ReadText("attribute").status() == ErrnoStatus(EACCES, "open attribute"));
  CHECK(tree.Exists("attribute"));
  const auto here = TreeDir::Open(tree, ".");
  CHECK(here->ReadText("attribute").status() == ErrnoStatus(EIO, "read attribute"));
}

TEST_CASE("a config space of which 64 bytes were readable is no conventional one", "[snapshot]") {
  const ScratchDir dir;
  const std::string device = dir.path() + "/sys/bus/pci/devices/0000:01:00.0";
  fs::create_directories(device);
  dir.Write("sys/bus/pci/devices/0000:01:00.0/config", std::string(64, '\1'));
  dir.Write(kReplayFile, "size\tsys/bus/pci/devices/0000:01:00.0/config\t4096\n");
  const Tree tree = Opened(dir.path());
  ConfigReader reader(tree);
  const auto image = reader.Read(*PciAddress::Parse("0000:01:00.0"),
                                 *TreeDir::Open(tree, "sys/bus/pci/devices/0000:01:00.0"));
  REQUIRE(image.ok());
  CHECK(image->bytes.size() == 64);
  CHECK(image->size_bytes == 4096);
}

TEST_CASE("holders are found by the number that the record has, whatever the name", "[snapshot]") {
  const ScratchDir dir;
  fs::create_directories(dir.path() + "/proc/42/fd");
  dir.Write("proc/42/comm", "python3\n");
  fs::create_symlink("/dev/odd", dir.path() + "/proc/42/fd/5");
  const std::vector<DeviceNode> nodes = {{.name = "nvidia0", .number = ParseDeviceNumber("195:0")}};
  SECTION("with the number") {
    dir.Write(kReplayFile, "node\tproc/42/fd/5\tc 195:0\n");
    const NodeHolders found = FindHolders(Opened(dir.path()), nodes);
    REQUIRE(found.by_node[0].size() == 1);
    CHECK(found.by_node[0][0].pid == 42);
    CHECK(found.complete);
  }
  SECTION("of a block device") {
    dir.Write(kReplayFile, "node\tproc/42/fd/5\tb 195:0\n");
    CHECK(FindHolders(Opened(dir.path()), nodes).by_node[0].empty());
  }
  SECTION("without it") { CHECK(FindHolders(Opened(dir.path()), nodes).by_node[0].empty()); }
}

TEST_CASE("processes that could not be seen there are not none here", "[snapshot]") {
  const ScratchDir dir;
  fs::create_directories(dir.path() + "/proc");
  SECTION("another process namespace") {
    dir.Write(kReplayFile, "hidden\tprocesses\tyes\n");
    const Tree tree = Opened(dir.path());
    CHECK_FALSE(SeesAllProcesses(tree));
    CHECK_FALSE(FindHolders(tree, {}).complete);
  }
  SECTION("descriptors that may not be read") {
    dir.Write(kReplayFile, "hidden\tdescriptors\tyes\n");
    const Tree tree = Opened(dir.path());
    CHECK(SeesAllProcesses(tree));
    CHECK_FALSE(FindHolders(tree, {}).complete);
  }
}

}  // namespace
}  // namespace vfio_agent
