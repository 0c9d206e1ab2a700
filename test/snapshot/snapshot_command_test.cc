// The command `snapshot`, and a snapshot as the root of other commands.
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "test/agent/node.h"
#include "test/snapshot/tar_bytes.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLong = absl::Seconds(60);

size_t CountEntries(const std::string& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

std::string SnapshotOf(const Node& node) {
  const std::string file = node.dir().path() + "/node.tar.gz";
  const ProgramResult result = node.Run({"snapshot", file});
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  return file;
}

TEST_CASE("a snapshot is told, private to its owner, and replaced only when asked", "[node]") {
  const Node node("cases/VIA-07");
  const std::string file = node.dir().path() + "/node.tar.gz";
  const ProgramResult result = node.Run({"snapshot", file});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());  // no progress where nobody watches
  CHECK_THAT(result.out, Catch::StartsWith(file + ": ") && Catch::Contains("masked in ") &&
                             Catch::Contains("vfio-agent plan --root " + file));
  struct stat facts = {};
  REQUIRE(::stat(file.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0600);
  const ProgramResult again = node.Run({"snapshot", file});
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Catch::Contains("--force"));
  CHECK(node.Run({"snapshot", file, "--force"}).exit_code == 0);
  CHECK(node.Run({"snapshot"}).exit_code == 2);
  CHECK(node.Run({"snapshot", node.dir().path() + "/none/x"}).exit_code == 1);
  const nlohmann::json document = node.RunJson({"snapshot", file, "--force"});
  CHECK(document.at("schema") == "vfio-agent/snapshot/v1");
  CHECK(document.at("bytes") == fs::file_size(file));
  CHECK(node.Writes().empty());
}

TEST_CASE("a snapshot can go to standard output, and what is in it to standard error", "[node]") {
  const Node node("cases/VIA-07");
  const ProgramResult result = node.Run({"snapshot", "-"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, Catch::Contains("masked in "));
  std::ifstream file(SnapshotOf(node), std::ios::binary);
  const std::string same{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  CHECK((result.out == same));
}

TEST_CASE("bind on a copy says that no kernel acts there, and writes nothing", "[node]") {
  const Node node("hgx-8gpu");
  const std::string file = SnapshotOf(node);
  const ScratchDir copy;
  // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c): in a test, with names of its own
  REQUIRE(std::system(("tar -xzf " + file + " -C " + copy.path()).c_str()) == 0);
  const std::string root = fs::exists(copy.path() + "/sys")
                               ? copy.path()
                               : fs::directory_iterator(copy.path())->path().string();
  const ProgramResult result =
      RunAgent({"bind", "--root", root, "--state-dir", node.state_dir() + "-copy"});
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains("is a copy: no kernel acts") &&
                             Catch::Contains("probe-refused") &&
                             !Catch::Contains("driver-changed"));
  std::ifstream text(root + "/sys/bus/pci/devices/0000:1b:00.0/driver_override");
  std::string written;
  std::getline(text, written);
  CHECK(written.find("vfio") == std::string::npos);
}

TEST_CASE("a tree without PCI devices gives no snapshot", "[node]") {
  const ScratchDir dir;
  const ProgramResult result =
      RunAgent({"snapshot", dir.path() + "/x.tar.gz", "--root", dir.path()});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("no PCI devices to read below"));
  CHECK(CountEntries(dir.path()) == 0);
}

TEST_CASE("a read that hangs is told, and the rest of the node is there", "[node]") {
  const Node node(
      "cases/VIA-07",
      "faults: [{device: \"0000:01:00.1\", op: \"read:power_state\", block: forever}]\n");
  const std::string file = node.dir().path() + "/node.tar.gz";
  const ProgramResult result = node.Run({"snapshot", file});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out,
             Catch::Contains("not read: sys/bus/pci/devices/0000:01:00.1/power_state: read"));
  const ProgramResult list = RunAgent({"list", "--all", "--root", file});
  CHECK(list.exit_code == 0);
  CHECK_THAT(list.out, Catch::Contains("02:00.0"));
  CHECK_THAT(list.err, Catch::Contains("0000:01:00.1: read") && Catch::Contains("timed out"));
}

TEST_CASE("what an attribute answered with an error is the snapshot's answer too", "[node]") {
  const Node node("cases/VIA-07",
                  "faults: [{device: \"0000:01:00.0\", op: \"read:power_state\", errno: EIO}]\n");
  const std::string file = SnapshotOf(node);
  const ProgramResult here = node.Run({"list", "--all", "-o", "json"});
  CHECK_THAT(here.out, Catch::Contains("Input/output error"));
  CHECK(RunAgent({"list", "--all", "-o", "json", "--root", file}).out == here.out);
}

TEST_CASE("an unpacked snapshot is a root as well", "[node]") {
  const Node node("cases/VIA-07");
  const std::string file = SnapshotOf(node);
  const std::string place = node.dir().path() + "/unpacked";
  fs::create_directory(place);
  REQUIRE(std::system(("tar xzf " + file + " -C " + place).c_str()) == 0);  // NOLINT
  CHECK(RunAgent({"plan", "-o", "json", "--root", place}).out ==
        RunAgent({"plan", "-o", "json", "--root", file}).out);
}

TEST_CASE("what was unpacked is gone at the end, however a command ends", "[node]") {
  const Node node("cases/VIA-07");
  const std::string file = SnapshotOf(node);
  const ScratchDir dir;
  const std::vector<std::string> place = {"TMPDIR=" + dir.path()};
  SECTION("well") { CHECK(RunAgent({"plan", "--root", file}, place).exit_code == 0); }
  SECTION("with an error") {
    CHECK(RunAgent({"explain", "0000:99:00.0", "--root", file}, place).exit_code == 2);
  }
  SECTION("refused") {
    CHECK(RunAgent({"plan", "--exit-code", "--root", file}, place).exit_code == 3);
  }
  SECTION("not unpacked at all") {
    const std::string bad = dir.Write("bad.tar.gz", TarBytes({.name = "../x", .text = "y"}));
    const ProgramResult result = RunAgent({"plan", "--root", bad}, place);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Catch::Contains("bad.tar.gz: '../x': no path below the root"));
    fs::remove(bad);
  }
  CHECK(CountEntries(dir.path()) == 0);
}

TEST_CASE("what is ended while it unpacks leaves nothing behind", "[node]") {
  std::string tar;
  for (int i = 0; i < 60'000; ++i) {
    tar += TarBytes({.name = "sys/" + std::to_string(i), .text = "", .type = '5'});
  }
  const ScratchDir files, place;
  const std::string big = files.Write("big.tar", tar + TarEnd());
  const ProgramResult result = RunAgent({"plan", "--root", big}, {"TMPDIR=" + place.path()},
                                        {"/usr/bin/timeout", "--signal=TERM", "0.3"});
  CHECK(result.exit_code == 124);  // it was not done yet
  CHECK(CountEntries(place.path()) == 0);
}

TEST_CASE("a command on a snapshot ends where its parent ignores the ends of children", "[node]") {
  const Node node("cases/VIA-07");
  const std::string file = SnapshotOf(node);
  const ProgramResult result =
      RunAgent({"plan", "--root", file}, {},
               {"/usr/bin/timeout", "-k", "1", "60", "/usr/bin/env", "--ignore-signal=CHLD"});
  CHECK(result.exit_code == 0);
  CHECK(result.out == RunAgent({"plan", "--root", file}).out);
}

TEST_CASE("a daemon that runs on a snapshot gets its signals, and leaves nothing behind",
          "[node][grpc]") {
  const Node node("cases/VIA-07");
  const std::string file = SnapshotOf(node);
  const std::string place = node.dir().path() + "/tmp";
  fs::create_directory(place);
  ::setenv("TMPDIR", place.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): the daemon's alone
  Daemon daemon({"--root", file, "--device-plugin-dir", node.kubelet_dir(), "--kubelet-root-dir",
                 node.kubelet_root()});
  ::unsetenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  CHECK_FALSE(daemon.WaitForLine({"event=iommu_on"}, kLong).empty());
  CHECK(Eventually(
      [&] {
        for (const auto& entry : fs::directory_iterator(place)) {
          if (entry.path().filename().string().starts_with("vfio-agent-root-")) return true;
        }
        return false;
      },
      kLong));
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  for (const auto& entry : fs::directory_iterator(place)) {
    CHECK_FALSE(entry.path().filename().string().starts_with("vfio-agent-root-"));
  }
}

TEST_CASE("a root that is no snapshot and no directory is told in one line", "[node]") {
  const ScratchDir dir;
  const std::string file = dir.Write("words", "no archive at all");
  const ProgramResult result = RunAgent({"plan", "--root", file});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("no tar.gz"));
  CHECK(std::ranges::count(result.err, '\n') == 1);
}

}  // namespace
}  // namespace vfio_agent
