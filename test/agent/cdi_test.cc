#include "agent/outlets/cdi.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "agent/outlets/cdi_files.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr char kT4[] = "nvidia.com/TESLA_T4";
constexpr char kT4File[] = "vfio-agent-nvidia.com-TESLA_T4.json";

OfferedUnit UnitWith(const std::string& id, std::vector<std::string> nodes) {
  return {.id = id, .addresses = {id}, .group = 26, .nodes = std::move(nodes), .healthy = true};
}

Offer OfferOf(const std::string& resource, std::vector<OfferedUnit> units) {
  return {.resource = resource, .units = std::move(units)};
}

Offer LegacyOffer(const std::string& resource = kT4) {
  return OfferOf(resource, {UnitWith("0000:11:00.0", {"/dev/vfio/vfio", "/dev/vfio/26"})});
}

std::vector<std::string> PathsIn(const std::string& text) {
  std::vector<std::string> paths;
  const auto spec = nlohmann::json::parse(text);
  for (const auto& device : spec.at("devices")) {
    for (const auto& node : device.at("containerEdits").at("deviceNodes")) {
      paths.push_back(node.at("path"));
    }
  }
  return paths;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ino_t InodeOf(const std::string& path) {
  struct stat facts = {};
  REQUIRE(::lstat(path.c_str(), &facts) == 0);
  return facts.st_ino;
}

// A directory that nobody can write to, root neither.
class ReadOnlyDir {
 public:
  explicit ReadOnlyDir(std::string path) : path_(std::move(path)) {
    fs::create_directory(path_);
    REQUIRE(::mount("none", path_.c_str(), "tmpfs", MS_RDONLY, nullptr) == 0);
  }
  ~ReadOnlyDir() { End(); }
  ReadOnlyDir(const ReadOnlyDir&) = delete;
  ReadOnlyDir& operator=(const ReadOnlyDir&) = delete;
  void End() {
    if (!path_.empty()) CHECK(::umount(path_.c_str()) == 0);
    path_.clear();
  }

 private:
  std::string path_;
};

TEST_CASE("R48: the spec of a unit with a group names the group's node", "[agent]") {
  CHECK(CdiText(LegacyOffer()) == R"({
 "cdiVersion": "0.5.0",
 "kind": "nvidia.com/TESLA_T4",
 "devices": [
  {
   "name": "0000:11:00.0",
   "containerEdits": {
    "deviceNodes": [
     {
      "path": "/dev/vfio/26",
      "hostPath": "/dev/vfio/26",
      "permissions": "mrw"
     }
    ]
   }
  }
 ]
}
)");
}

TEST_CASE("R48: a unit has its group's node, else its cdevs, and never the container's node",
          "[agent]") {
  using Paths = std::vector<std::string>;
  const auto paths = [](Paths nodes) {
    return PathsIn(CdiText(OfferOf(kT4, {UnitWith("0000:11:00.0", std::move(nodes))})));
  };
  CHECK(paths({"/dev/vfio/vfio", "/dev/vfio/0", "/dev/vfio/devices/vfio3", "/dev/iommu"}) ==
        Paths{"/dev/vfio/0"});
  CHECK(paths({"/dev/vfio/vfio", "/dev/vfio/devices/vfio3"}) == Paths{"/dev/vfio/devices/vfio3"});
  CHECK(paths({"/dev/vfio/devices/vfio3", "/dev/iommu"}) ==
        Paths{"/dev/vfio/devices/vfio3", "/dev/iommu"});
}

TEST_CASE("R48, T22: one device for each unit, unhealthy ones too, under the kubelet's id",
          "[agent]") {
  Offer offer = LegacyOffer();
  offer.units.push_back(UnitWith("0000:12:00.0", {"/dev/vfio/27"}));
  offer.units.back().healthy = false;
  const auto spec = nlohmann::json::parse(CdiText(offer));
  REQUIRE(spec.at("devices").size() == 2);
  CHECK(spec.at("devices")[0].at("name") == "0000:11:00.0");
  CHECK(spec.at("devices")[1].at("name") == "0000:12:00.0");
}

TEST_CASE("a spec never names nodes of an earlier picture, nor a device without any", "[agent]") {
  Offer offer = LegacyOffer();
  offer.units.push_back(UnitWith("0000:12:00.0", {"/dev/vfio/27"}));
  offer.units.back().withdrawn = absl::UnixEpoch();
  offer.units.push_back(UnitWith("0000:13:00.0", {"/dev/vfio/vfio"}));
  CHECK(PathsIn(CdiText(offer)) == std::vector<std::string>{"/dev/vfio/26"});
  offer.units.erase(offer.units.begin());
  CHECK(CdiText(offer).empty());
}

TEST_CASE("a dot in the class asks for the version of CDI that knows it", "[agent]") {
  CHECK_THAT(CdiText(LegacyOffer("nvidia.com/T4")), Catch::Contains("\"0.5.0\""));
  CHECK_THAT(CdiText(LegacyOffer("nvidia.com/T4.b")), Catch::Contains("\"0.6.0\""));
}

TEST_CASE("resources that are no kind of CDI have no spec, and it is said why", "[agent]") {
  CHECK(CheckCdiKind("nvidia.com/GH100_H100-SXM5.80GB").ok());
  const std::string bad =
      GENERATE("nvidia.com/3182", "1a.com/T4", "nvidia.com/T4_", "nvidia.com/", "/T4", "T4",
               "nvidia.com/../T4", "nvidia.com/..", "nvidia.com/T 4");
  CAPTURE(bad);
  CHECK(absl::IsInvalidArgument(CheckCdiKind(bad)));
  const CdiSpecs specs = MakeCdiSpecs({LegacyOffer(bad), LegacyOffer()});
  CHECK(specs.files.size() == 1);
  REQUIRE(specs.problems.size() == 1);
  CHECK_THAT(specs.problems[0], Catch::Contains(bad));
}

TEST_CASE("two resources never share a file", "[agent]") {
  const CdiSpecs specs = MakeCdiSpecs({LegacyOffer("x.com/y-z"), LegacyOffer("x.com-y/z")});
  REQUIRE(specs.files.size() == 1);
  CHECK_THAT(specs.files.begin()->second, Catch::Contains("\"x.com/y-z\""));
  REQUIRE(specs.problems.size() == 1);
  CHECK_THAT(specs.problems[0], Catch::StartsWith("x.com-y/z"));
}

TEST_CASE("R48: specs are whole files for everybody to read, in a directory that is made",
          "[agent]") {
  const ScratchDir scratch;
  const std::string dir = scratch.path() + "/run/cdi";
  CdiFiles files;
  CHECK(files.Update(dir, {LegacyOffer()}).empty());
  CHECK(Read(dir + "/" + kT4File) == CdiText(LegacyOffer()));
  CHECK(fs::status(dir + "/" + kT4File).permissions() == fs::perms(0644));
  CHECK(fs::status(dir).permissions() == fs::perms(0755));
  CHECK(std::distance(fs::directory_iterator(dir), {}) == 1);  // nothing half-way beside it
}

TEST_CASE("R48: a spec is written anew when it is another, by a new file, and else left alone",
          "[agent]") {
  const ScratchDir dir;
  const std::string path = dir.path() + "/" + kT4File;
  CHECK(CdiFiles().Update(dir.path(), {LegacyOffer()}).empty());
  const ino_t first = InodeOf(path);
  // Whoever has opened it goes on reading the old text.
  std::ifstream reader(path);
  CHECK(CdiFiles().Update(dir.path(), {LegacyOffer()}).empty());
  CHECK(InodeOf(path) == first);
  Offer changed = LegacyOffer();
  changed.units[0].nodes = {"/dev/vfio/31"};
  CHECK(CdiFiles().Update(dir.path(), {changed}).empty());
  CHECK(InodeOf(path) != first);
  CHECK(PathsIn(Read(path)) == std::vector<std::string>{"/dev/vfio/31"});
  CHECK(std::string(std::istreambuf_iterator<char>(reader), {}) == CdiText(LegacyOffer()));
}

TEST_CASE("R48: what somebody has done to a spec is put right", "[agent]") {
  const ScratchDir dir;
  const std::string path = dir.path() + "/" + kT4File;
  CdiFiles files;
  CHECK(files.Update(dir.path(), {LegacyOffer()}).empty());
  SECTION("removed") { fs::remove(path); }
  SECTION("cut off") { dir.Write(kT4File, "{"); }
  SECTION("longer") { std::ofstream(path, std::ios::app) << "{}"; }
  SECTION("a link in its place") {
    fs::remove(path);
    fs::create_symlink(dir.Write("other", "untouched"), path);
  }
  CHECK(files.Update(dir.path(), {LegacyOffer()}).empty());
  CHECK(Read(path) == CdiText(LegacyOffer()));
  CHECK(fs::is_regular_file(fs::symlink_status(path)));
  if (fs::exists(dir.path() + "/other")) CHECK(Read(dir.path() + "/other") == "untouched");
}

TEST_CASE("R48: specs of resources that are served no longer go, and nothing else does",
          "[agent]") {
  const ScratchDir dir;
  dir.Write("vfio-agent-nvidia.com-OLD.json", "{}");
  dir.Write("nvidia.yaml", "kept");
  dir.Write("vfio-agent.json", "kept");
  dir.Write("vfio-agent-notes.txt", "kept");
  const std::string target = dir.Write("target", "kept");
  fs::create_symlink(target, dir.path() + "/vfio-agent-link.json");
  fs::create_directory(dir.path() + "/vfio-agent-dir.json");
  CdiFiles files;
  CHECK(files.Update(dir.path(), {LegacyOffer()}).empty());
  CHECK_FALSE(fs::exists(dir.path() + "/vfio-agent-nvidia.com-OLD.json"));
  CHECK(fs::exists(dir.path() + "/" + kT4File));
  CHECK(files.Update(dir.path(), {}).empty());
  CHECK_FALSE(fs::exists(dir.path() + "/" + kT4File));
  for (const char* name : {"nvidia.yaml", "vfio-agent.json", "vfio-agent-notes.txt", "target"}) {
    CAPTURE(name);
    CHECK(Read(dir.path() + "/" + name) == "kept");
  }
  CHECK(fs::is_symlink(dir.path() + "/vfio-agent-link.json"));
  CHECK(fs::is_directory(dir.path() + "/vfio-agent-dir.json"));
}

TEST_CASE("a directory that is named no longer keeps no spec, and none is ever written to none",
          "[agent]") {
  const ScratchDir first, second;
  CdiFiles files;
  CHECK(files.Update(first.path(), {LegacyOffer()}).empty());
  CHECK(files.Update(second.path(), {LegacyOffer()}).empty());
  CHECK(fs::is_empty(first.path()));
  CHECK(fs::exists(second.path() + "/" + kT4File));
  CHECK(files.Update("", {LegacyOffer()}).empty());
  CHECK(fs::is_empty(second.path()));
}

TEST_CASE("a directory that cannot be written to is told of once, and again after it was good",
          "[agent]") {
  const ScratchDir scratch;
  const std::string dir = scratch.path() + "/cdi";
  CdiFiles files;
  for (int i = 0; i < 2; ++i) {
    CAPTURE(i);
    ReadOnlyDir read_only(dir);
    const std::vector<std::string> problems = files.Update(dir, {LegacyOffer()});
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems[0], Catch::Contains(kT4File) && Catch::Contains("Read-only file system"));
    CHECK(files.Update(dir, {LegacyOffer()}).empty());
    read_only.End();
    CHECK(files.Update(dir, {LegacyOffer()}).empty());
    CHECK(Read(dir + "/" + kT4File) == CdiText(LegacyOffer()));
  }
}

TEST_CASE("a spec that cannot be written anew is removed rather than left wrong", "[agent]") {
  const ScratchDir dir;
  const std::string path = dir.path() + "/" + kT4File;
  CdiFiles files;
  CHECK(files.Update(dir.path(), {LegacyOffer()}).empty());
  fs::create_directory(path + ".new");  // nothing can be written beside it
  Offer changed = LegacyOffer();
  changed.units[0].nodes = {"/dev/vfio/31"};
  CHECK(files.Update(dir.path(), {changed}).size() == 1);
  CHECK_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace vfio_agent
