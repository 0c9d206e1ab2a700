// The configuration file's new texts: which count, when, and how often.
#include "agent/config/config_watch.h"

#include <poll.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "agent/config/config.h"
#include "test/agent/config_mount.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;
using Found = ConfigWatch::Found;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// One that began with the text that the file has now, and a clock that the test moves.
struct Watched {
  explicit Watched(const std::string& file) : watch(file, PrintOf(file)) {}

  static std::optional<size_t> PrintOf(const std::string& file) {
    const absl::StatusOr<std::string> text = ReadConfigText(file);
    return text.ok() ? std::optional(FingerprintOf(*text)) : std::nullopt;
  }
  // Whether the kernel has something to tell: it does so at once.
  bool Told() {
    pollfd ready = {.fd = watch.fd(), .events = POLLIN};
    if (::poll(&ready, 1, 0) != 1) return false;
    watch.Drain(now);
    return true;
  }
  Found Settle() {
    if (watch.due() == absl::InfiniteFuture()) return Found::kNothing;
    now = watch.due();
    return watch.Check(now);
  }

  ConfigWatch watch;
  absl::Time now = kStart;
};

TEST_CASE(
    "a ConfigMap's new text is noticed by its ..data link, once it has been the same a moment",
    "[config]") {
  const ScratchDir dir;
  ConfigMount mount(dir.path() + "/etc", "a: 1\n");
  Watched watched(mount.file());
  mount.Put("a: 2\n");
  REQUIRE(watched.Told());
  CHECK(watched.watch.Check(kStart) == Found::kNothing);  // not at once
  CHECK(watched.Settle() == Found::kNew);
  watched.watch.Tried();
  CHECK(watched.Settle() == Found::kNothing);  // once only
  mount.Put("a: 2\n");                         // another file with the same text
  CHECK(watched.Told());
  CHECK(watched.Settle() == Found::kNothing);
}

TEST_CASE("a text that is gone is no new configuration, one that was never there is none either",
          "[config]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "mode: container\n");
  Watched watched(file);
  dir.Write("config.yaml", GENERATE("", " \n\n"));
  REQUIRE(watched.Told());
  CHECK(watched.Settle() == Found::kEmpty);
  watched.watch.Tried();
  CHECK(watched.Settle() == Found::kNothing);
  Watched empty(file);  // empty from the start: that is in force
  empty.watch.Look(empty.now);
  CHECK(empty.Settle() == Found::kNothing);
  dir.Write("config.yaml", "mode: container\n");
  REQUIRE(watched.Told());
  CHECK(watched.Settle() == Found::kNew);
}

TEST_CASE("a pipe's text was read and stays in force, also when it is looked at again",
          "[config]") {
  const ScratchDir dir;
  const std::string pipe = dir.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  ConfigWatch watch(pipe, FingerprintOf("mode: container\n"));
  CHECK(watch.fd() == -1);
  watch.Look(kStart);  // nobody writes to it: a read would find it empty, or wait
  watch.Tried();
  CHECK(watch.due() == absl::InfiniteFuture());
}

TEST_CASE("a file that is replaced by a rename, or written in place, is noticed", "[config]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "a: 1\n");
  Watched watched(file);
  SECTION("a rename") { fs::rename(dir.Write("config.yaml.new", "a: 2\n"), file); }
  SECTION("in place") { dir.Write("config.yaml", "a: 2\n"); }
  REQUIRE(watched.Told());
  CHECK(watched.Settle() == Found::kNew);
}

TEST_CASE("a text that still changes is waited for, and what else happens there is not",
          "[config]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "a: 1\n");
  Watched watched(file);
  dir.Write("config.yaml", "a: 2\n");
  REQUIRE(watched.Told());
  const absl::Time first = watched.watch.due();
  dir.Write("another", "x");
  watched.now += absl::Milliseconds(10);
  watched.Told();
  CHECK(watched.watch.due() == first);
  dir.Write("config.yaml", "a: 3\n");  // the event is not read yet
  CHECK(watched.Settle() == Found::kNothing);
  CHECK(watched.Settle() == Found::kNew);
}

TEST_CASE("a file that has gone is told as gone, and one that comes back unchanged is not new",
          "[config]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "a: 1\n");
  Watched watched(file);
  fs::remove(file);
  REQUIRE(watched.Told());
  SECTION("gone") {
    CHECK(watched.Settle() == Found::kGone);
    watched.watch.Tried();
    dir.Write("config.yaml", "a: 1\n");
    REQUIRE(watched.Told());
    CHECK(watched.Settle() == Found::kNew);
  }
  SECTION("an editor takes it away and writes it anew") {
    dir.Write("config.yaml", "a: 1\n");
    CHECK(watched.Told());
    CHECK(watched.Settle() == Found::kNothing);
  }
}

TEST_CASE("a file that is there and cannot be read is told as that, not as gone", "[config]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "a: 1\n");
  std::optional<Watched> watched;
  SECTION("where there was one") {
    watched.emplace(file);
    fs::remove(file);
  }
  SECTION("where there was none, and the defaults are in force") {
    fs::remove(file);
    watched.emplace(file);
  }
  fs::create_symlink("config.yaml", file);  // open() says ELOOP, to root as well
  REQUIRE(watched->Told());
  CHECK(watched->Settle() == Found::kUnreadable);
  watched->watch.Tried();
  CHECK(watched->Settle() == Found::kNothing);
  fs::remove(file);
  REQUIRE(watched->Told());
  CHECK(watched->Settle() == Found::kGone);
}

TEST_CASE("what no event tells is seen at the next look", "[config]") {
  const ScratchDir dir;
  SECTION("a directory that is made later, and watched from then on") {
    const std::string file = dir.path() + "/etc/config.yaml";
    Watched watched(file);
    fs::create_directory(dir.path() + "/etc");
    dir.Write("etc/config.yaml", "a: 1\n");
    CHECK_FALSE(watched.Told());
    watched.watch.Look(kStart);
    CHECK(watched.Settle() == Found::kNew);
    watched.watch.Tried();
    dir.Write("etc/config.yaml", "a: 2\n");
    CHECK(watched.Told());
  }
  SECTION("a link that leads elsewhere") {
    const std::string target = dir.Write("target", "a: 1\n");
    fs::create_directory(dir.path() + "/etc");
    fs::create_symlink(target, dir.path() + "/etc/config.yaml");
    Watched watched(dir.path() + "/etc/config.yaml");
    dir.Write("target", "a: 2\n");
    CHECK_FALSE(watched.Told());
    watched.watch.Look(kStart);
    CHECK(watched.Settle() == Found::kNew);
  }
  SECTION("a directory in another's place") {
    fs::create_directory(dir.path() + "/etc");
    dir.Write("etc/config.yaml", "a: 1\n");
    Watched watched(dir.path() + "/etc/config.yaml");
    fs::remove_all(dir.path() + "/etc");
    fs::create_directory(dir.path() + "/etc");
    CHECK(watched.Told());  // looks anew, and watches the new one
    dir.Write("etc/config.yaml", "a: 2\n");
    CHECK(watched.Told());
    CHECK(watched.Settle() == Found::kNew);
  }
}

}  // namespace
}  // namespace vfio_agent
