// Recording: the files of a snapshot give the answers that the node gave.
#include "agent/snapshot/recording.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "agent/snapshot/snapshot.h"
#include "sysfs/status.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// A tree of its own, and what a recording of some reads of it has.
class Source {
 public:
  Source() {
    fs::create_directories(dir_.path() + "/sys/devices/a");
    fs::create_directories(dir_.path() + "/sys/bus");
    dir_.Write("sys/devices/a/vendor", "0x10de\n");
    dir_.Write("sys/devices/a/unread", "private\n");
    fs::create_symlink("../devices/a", dir_.path() + "/sys/bus/a");
    fs::create_symlink("../../driver", dir_.path() + "/sys/devices/a/driver");
  }
  const ScratchDir& dir() const { return dir_; }

  Recording Record(const std::function<void(const Tree&)>& read) const {
    const absl::StatusOr<Tree> links = Tree::Open(dir_.path());
    RecordingBuilder builder(*links);
    const auto tree = Tree::OpenRecorded(
        dir_.path(), {.end = [&builder](const Reading& reading) { builder.Add(reading); }}, {});
    read(*tree);
    return std::move(builder).Finish();
  }

 private:
  ScratchDir dir_;
};

TEST_CASE("what is read is kept at its own place, with the links that lead there", "[snapshot]") {
  const Source source;
  const Recording recording = source.Record([](const Tree& tree) {
    CHECK(tree.ReadText("sys/bus/a/vendor").ok());
    CHECK(tree.ReadLinkName("sys/bus/a/driver").ok());
  });
  CHECK(recording.items.at("sys/bus/a") == Item{ItemKind::kLink, "../devices/a"});
  CHECK(recording.items.at("sys/devices/a/vendor") == Item{ItemKind::kFile, "0x10de\n"});
  CHECK(recording.items.at("sys/devices/a/driver") == Item{ItemKind::kLink, "../../driver"});
  CHECK(recording.items.at("sys/devices/a").kind == ItemKind::kDirectory);
  CHECK_FALSE(recording.items.contains("sys/devices/a/unread"));
}

TEST_CASE("what is only listed is kept by name, its text is not", "[snapshot]") {
  const Source source;
  const Recording recording =
      source.Record([](const Tree& tree) { CHECK(tree.List("sys/bus/a").ok()); });
  CHECK(recording.items.at("sys/devices/a/unread") == Item{ItemKind::kNamed, ""});
  CHECK(recording.items.at("sys/devices/a/driver") == Item{ItemKind::kLink, "unread"});
}

TEST_CASE("errors that plain files give by themselves are not kept, others are", "[snapshot]") {
  const Source source;
  const Recording recording = source.Record([](const Tree& tree) {
    CHECK_FALSE(tree.ReadText("sys/none").ok());          // there is none
    CHECK_FALSE(tree.List("sys/bus/a/vendor").ok());      // no directory
    CHECK_FALSE(tree.ReadLink("sys/bus/a/vendor").ok());  // no link
    CHECK(tree.ReadText("sys/bus/a/vendor").ok());
    CHECK_FALSE(tree.ReadText("sys/bus/a").ok());                // a directory: EISDIR
    CHECK_FALSE(tree.ReadText("sys/devices/a/unread", 3).ok());  // too long
  });
  REQUIRE(recording.replay.failures.size() == 2);
  CHECK(recording.replay.failures.contains({ReadKind::kText, "sys/bus/a"}));
  CHECK(recording.replay.failures.contains({ReadKind::kText, "sys/devices/a/unread"}));
}

TEST_CASE("an entry that is listed and gone when it is read is gone in the record too",
          "[snapshot]") {
  const Source source;
  const Recording recording = source.Record([&source](const Tree& tree) {
    CHECK(tree.List("sys/devices/a").ok());
    fs::remove(source.dir().path() + "/sys/devices/a/unread");
    CHECK_FALSE(tree.ReadText("sys/devices/a/unread").ok());
  });
  CHECK(recording.replay.failures.contains({ReadKind::kText, "sys/devices/a/unread"}));
}

TEST_CASE("of processes only what was asked about is kept", "[snapshot]") {
  const Source source;
  for (const char* pid : {"7", "8"}) {
    fs::create_directories(source.dir().path() + "/proc/" + pid + "/fd");
    source.dir().Write("proc/" + std::string(pid) + "/comm", "secret\n");
    fs::create_symlink("/home/ada/diary", source.dir().path() + "/proc/" + pid + "/fd/3");
  }
  const Recording recording = source.Record([](const Tree& tree) {
    CHECK(tree.List("proc").ok());
    for (const char* pid : {"7", "8"}) {
      CHECK(TreeDir::Open(tree, "proc/" + std::string(pid) + "/fd")->List().ok());
    }
    for (const char* path : {"proc/7/comm", "proc/8/comm"}) CHECK(tree.ReadText(path).ok());
    CHECK(tree.ReadLink("proc/8/fd/3").ok());
    CHECK_FALSE(tree.ReadText("proc/8/cgroup").ok());  // asked of those that are meant
  });
  CHECK(recording.items.contains("proc/8/comm"));
  CHECK_FALSE(recording.items.contains("proc/7"));
  CHECK_FALSE(recording.items.contains("proc/7/comm"));
  CHECK_FALSE(recording.items.contains("proc/8/fd/3"));  // no device
}

TEST_CASE("the process that takes the snapshot is not in it", "[snapshot]") {
  const Source source;
  fs::create_directories(source.dir().path() + "/proc/99/ns");
  fs::create_symlink("99", source.dir().path() + "/proc/self");
  fs::create_symlink("pid:[1]", source.dir().path() + "/proc/99/ns/pid");
  const Recording recording =
      source.Record([](const Tree& tree) { CHECK(tree.ReadLink("proc/self/ns/pid").ok()); });
  CHECK(recording.items.empty());
}

TEST_CASE("links that lead nowhere, in circles and out of the root end", "[snapshot]") {
  const Source source;
  fs::create_symlink("loop", source.dir().path() + "/sys/loop");
  fs::create_symlink("../../../../../sys/devices/a", source.dir().path() + "/sys/out");
  fs::create_symlink("gone", source.dir().path() + "/sys/dangling");
  const Recording recording = source.Record([](const Tree& tree) {
    CHECK_FALSE(tree.Exists("sys/loop"));
    CHECK_FALSE(tree.Exists("sys/dangling"));
    CHECK(tree.ReadText("sys/out/vendor").ok());
  });
  CHECK(recording.items.at("sys/devices/a/vendor").text == "0x10de\n");
}

TEST_CASE("a snapshot says what could not be read, and of itself nothing that changes",
          "[snapshot]") {
  Recording recording;
  recording.items["proc/sys/kernel/osrelease"] = {ItemKind::kFile, "6.1.0\n"};
  recording.items["sys/a\x1b[2J"] = {ItemKind::kFile, "x"};
  recording.replay.failures[{ReadKind::kText, "sys/b"}] = ErrnoStatus(EIO, "read sys/b");
  recording.replay.notes[{ReadKind::kHidden, "descriptors"}] = "yes";
  const Snapshot snapshot = MakeSnapshot(
      recording, {{"etc/modprobe.d/vfio.conf", "blacklist vfio\n"}}, {"use: given up"});
  CHECK(snapshot.about.at("schema") == "vfio-agent/snapshot/v1");
  CHECK(snapshot.about.at("kernel") == "6.1.0");
  CHECK(snapshot.about.at("not_read").at(0).at("path") == "sys/b");
  CHECK(snapshot.about.at("not_read").at(0).at("why") == "read sys/b: Input/output error");
  CHECK(snapshot.about.at("not_seen").at(0) == "descriptors");
  CHECK(snapshot.about.at("unfinished").at(0) == "use: given up");
  CHECK(snapshot.items.at("etc/modprobe.d/vfio.conf").text == "blacklist vfio\n");
  CHECK(snapshot.items.size() == 4);  // the odd name is not among them
  CHECK(
      MakeSnapshot(recording, {{"etc/modprobe.d/vfio.conf", "blacklist vfio\n"}}, {"use: given up"})
          .items == snapshot.items);
}

TEST_CASE("what a snapshot says of failures has no name that its files do not have", "[snapshot]") {
  Recording recording;
  const std::string path = "sys/net/enx0c42a1030065/flags";
  recording.replay.failures[{ReadKind::kText, path}] = ErrnoStatus(EIO, "read " + path);
  recording.replay.failures[{ReadKind::kOpen, "proc/spl/kstat/zfs/acme tank/io"}] =
      ErrnoStatus(EACCES, "open proc/spl/kstat/zfs/acme tank/io");
  recording.replay.notes[{ReadKind::kHidden, "processes"}] = "yes";
  const Snapshot snapshot = MakeSnapshot(
      recording, {}, {"use: given up after proc/spl/kstat/zfs/acme tank/io", "x: /etc/acme"});
  std::string all = snapshot.about.dump();
  for (const auto& [name, item] : snapshot.items) all += name + item.text;
  CHECK_THAT(all, !Catch::Contains("0c42a1030065") && !Catch::Contains("acme") &&
                      !Catch::Contains("tank"));
  CHECK(snapshot.about.at("not_read").at(0).at("why") ==
        "read sys/net/enx000000000001/flags: Input/output error");
  CHECK(snapshot.about.at("not_seen").at(0) == "processes");
  CHECK_THAT(snapshot.about.at("unfinished").at(0).get<std::string>(),
             Catch::StartsWith("use: given up after proc/spl/kstat/zfs/masked-000") &&
                 Catch::EndsWith("/io"));
}

}  // namespace
}  // namespace vfio_agent
