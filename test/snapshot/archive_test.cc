// Archives: the same files give the same bytes, and a hostile one does nothing outside of its
// place.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/snapshot/archive.h"
#include "agent/snapshot/write_file.h"
#include "test/agent/program.h"
#include "test/snapshot/tar_bytes.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A place to unpack to, with something beside it that no archive may touch.
class Place {
 public:
  Place() {
    fs::create_directory(dir_.path() + "/in");
    dir_.Write("secret", "untouched");
  }
  absl::Status Unpack(const std::string& bytes, const ArchiveLimits& limits = {}) const {
    return UnpackArchive(dir_.Write("archive", bytes), in(), limits);
  }
  std::string in() const { return dir_.path() + "/in"; }
  std::string secret() const { return dir_.path() + "/secret"; }

 private:
  ScratchDir dir_;
};

TEST_CASE("files, links and empty directories come out as they went in", "[snapshot]") {
  const std::string deep =
      std::string(90, 'd') + "/" + std::string(90, 'e') + "/" + std::string(120, 'f');
  const std::map<std::string, Item> items = {
      {"sys/empty", {ItemKind::kDirectory, ""}},
      {"sys/named", {ItemKind::kNamed, ""}},
      {"sys/bytes", {ItemKind::kFile, std::string("\0\xff\n", 3)}},
      {"sys/link", {ItemKind::kLink, "../../" + std::string(150, 'x')}},
      {deep, {ItemKind::kFile, "deep"}}};
  const Place place;
  const auto bytes = PackItems(items);
  REQUIRE(bytes.ok());
  REQUIRE(place.Unpack(*bytes).ok());
  CHECK(fs::is_directory(place.in() + "/sys/empty"));
  CHECK(fs::file_size(place.in() + "/sys/named") == 0);
  CHECK(Slurp(place.in() + "/sys/bytes") == std::string("\0\xff\n", 3));
  CHECK(fs::read_symlink(place.in() + "/sys/link") == "../../" + std::string(150, 'x'));
  CHECK(Slurp(place.in() + "/" + deep) == "deep");
}

TEST_CASE("the same files give the same bytes, of no time and nobody", "[snapshot]") {
  const std::map<std::string, Item> items = {{"a", {ItemKind::kFile, "1"}}};
  const auto bytes = PackItems(items);
  REQUIRE(bytes.ok());
  CHECK(*PackItems(items) == *bytes);
  CHECK(bytes->substr(0, 4) == std::string("\x1f\x8b\x08\0", 4));  // gzip, without a name
  CHECK(bytes->substr(4, 4) == std::string(4, '\0'));              // its time
}

struct Hostile {
  const char* what;
  std::string bytes;
  const char* message;
};

std::vector<Hostile> HostileArchives(const std::string& secret) {
  const auto text = [](const std::string& name) { return TarBytes({.name = name, .text = "x"}); };
  const auto link = [](const std::string& target) {
    return TarBytes({.name = "a", .type = '2', .target = target});
  };
  return {
      {"absolute", text(secret), "no path below the root"},
      {"upwards", text("../secret"), "no path below the root"},
      {"upwards further in", text("a/../../secret"), "no path below the root"},
      {"a dot", text("a/./b"), "no path below the root"},
      {"through a link", link("..") + text("a/secret"), "leads through what is no directory"},
      {"over a link", link("../secret") + text("a"), "stands there twice"},
      {"a directory over a link", link("..") + TarBytes({.name = "a", .type = '5'}),
       "leads through what is no directory"},
      {"hard link", TarBytes({.name = "a", .type = '1', .target = "../secret"}), "a hard link"},
      {"device", TarBytes({.name = "a", .type = '3'}), "no plain file, directory or link"},
      {"FIFO", TarBytes({.name = "a", .type = '6'}), "no plain file, directory or link"},
      {"control characters", text("a\x1b[2J"), "control characters"},
      {"twice", text("a") + text("a"), "stands there twice"},
      {"no name", text(""), ""},
  };
}

TEST_CASE("an archive that wants to be anywhere else is refused, and nothing happens there",
          "[snapshot]") {
  const size_t count = HostileArchives("").size();
  for (size_t i = 0; i < count; ++i) {
    const Place place;
    const Hostile hostile = HostileArchives(place.secret())[i];
    CAPTURE(hostile.what);
    const absl::Status status = place.Unpack(hostile.bytes + TarEnd());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(hostile.message));
    CHECK_THAT(std::string(status.message()), !Catch::Contains("\x1b"));
    CHECK(Slurp(place.secret()) == "untouched");
  }
}

TEST_CASE("a name has at most 64 parts", "[snapshot]") {
  std::string deep;
  for (int i = 0; i < 63; ++i) deep += "d/";
  const auto unpack = [](const std::string& name) {
    return Place().Unpack(*PackItems({{name, {ItemKind::kFile, "x"}}}));
  };
  CHECK(unpack(deep + "f").ok());
  const absl::Status status = unpack(deep + "d/f");
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("too deep"));
}

TEST_CASE("a link may point anywhere: it is not followed", "[snapshot]") {
  const Place place;
  CHECK(
      place.Unpack(TarBytes({.name = "a", .type = '2', .target = "/etc/passwd"}) + TarEnd()).ok());
  CHECK(fs::read_symlink(place.in() + "/a") == "/etc/passwd");
}

TEST_CASE("a bomb is given up at the limit", "[snapshot]") {
  const Place place;
  const std::string kilobyte(1024, 'x');
  SECTION("one file") {
    const absl::Status status =
        place.Unpack(TarBytes({.name = "a", .text = kilobyte}) + TarEnd(), {.file_bytes = 1000});
    CHECK(absl::IsResourceExhausted(status));
  }
  SECTION("all files") {
    const absl::Status status =
        place.Unpack(TarBytes({.name = "a", .text = kilobyte}) +
                         TarBytes({.name = "b", .text = kilobyte}) + TarEnd(),
                     {.total_bytes = 2000});
    CHECK(absl::IsResourceExhausted(status));
  }
  SECTION("many names") {
    std::string bytes;
    for (int i = 0; i < 20; ++i) bytes += TarBytes({.name = "f" + std::to_string(i)});
    CHECK(absl::IsResourceExhausted(place.Unpack(bytes + TarEnd(), {.entries = 10})));
  }
  SECTION("directories that are only on the way") {
    const std::string deep = "d/d/d/d/d/d/d/d/d/d/d/d/f";
    CHECK(absl::IsResourceExhausted(
        place.Unpack(TarBytes({.name = deep, .text = "x"}) + TarEnd(), {.entries = 10})));
  }
  SECTION("a file of zeros that is small when packed") {
    std::map<std::string, Item> items = {{"a", {ItemKind::kFile, std::string(1 << 20, '\0')}}};
    CHECK(absl::IsResourceExhausted(place.Unpack(*PackItems(items), {.file_bytes = 1 << 19})));
  }
}

TEST_CASE("a file with holes is refused whatever its size", "[snapshot]") {
  // GNU's old form: type 'S', the first piece at 386, the real size at 483.
  std::string block = TarBytes({.name = "a", .text = std::string(512, 'x'), .type = 'S'});
  block.replace(386, 11, "00000000000");
  block.replace(398, 11, "00000001000");
  block.replace(483, 11, "00100000000");
  block.replace(257, 8, "ustar  ");
  unsigned sum = 8 * ' ';
  for (size_t i = 0; i < 512; ++i) {
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(block[i]);
  }
  std::string checksum(7, '\0');
  std::snprintf(checksum.data(), 7, "%06o", sum);
  block.replace(148, 7, checksum);
  const Place place;
  const absl::Status status = place.Unpack(block + TarEnd());
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("a file with holes"));
}

TEST_CASE("what is no archive, or ends early, is told in one line", "[snapshot]") {
  const Place place;
  const auto whole = PackItems({{"a", {ItemKind::kFile, std::string(100'000, 'a')}}});
  for (const std::string& bytes : {std::string("no archive at all"), std::string("\x1f\x8b\x08"),
                                   whole->substr(0, whole->size() / 2),
                                   TarBytes({.name = "a", .text = "x", .claimed_bytes = 4096})}) {
    const absl::Status status = place.Unpack(bytes);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("no tar.gz"));
    fs::remove_all(place.in() + "/a");
  }
}

TEST_CASE("a file is written whole, for its owner alone, and replaces nothing unasked",
          "[snapshot]") {
  const ScratchDir dir;
  const std::string path = dir.path() + "/new";
  REQUIRE(WriteNewFile(path, "first", false).ok());
  struct stat facts = {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0600);
  CHECK(absl::IsAlreadyExists(WriteNewFile(path, "second", false)));
  CHECK(Slurp(path) == "first");
  CHECK(WriteNewFile(path, "second", true).ok());
  CHECK(Slurp(path) == "second");
  CHECK(absl::IsNotFound(WriteNewFile(dir.path() + "/none/new", "x", false)));
  CHECK(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()) == 1);
}

}  // namespace
}  // namespace vfio_agent
