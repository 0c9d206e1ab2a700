// NFD's feature file: its text, and the file in its directory.
#include "agent/outlets/nfd.h"
#include "agent/outlets/unsafe_label.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/outlets/nfd_file.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr IommuFacts kIntelOn = {.state = IommuState::kOn, .kind = IommuKind::kIntel};
constexpr absl::Duration kValid = absl::Minutes(10);
const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
const absl::Time kBoot = absl::FromUnixSeconds(100);

Offer OfferOf(const std::string& resource, int healthy, int sick) {
  Offer offer{.resource = resource};
  for (int i = 0; i < healthy + sick; ++i) {
    offer.units.push_back({.id = absl::StrFormat("0000:%02x:00.0", i), .healthy = i < healthy});
  }
  return offer;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The directory as NFD sees it, and moments after the start.
struct Place {
  ScratchDir scratch;
  std::string dir = scratch.path() + "/etc/features.d";
  std::string path = dir + "/vfio-agent";
  NfdFile file;

  std::vector<std::string> Update(const std::string& labels, absl::Duration after) {
    return file.Update(dir, {.text = labels}, kValid,
                       {.steady = kBoot + after, .wall = kStart + after});
  }
};

TEST_CASE("the mode and its state are labels, beside those of the offers", "[agent]") {
  const std::string mode = ModeLabels({.mode = "vm-passthrough", .state = "switching"});
  CHECK(mode == "vfio-agent/mode=vm-passthrough\nvfio-agent/mode.state=switching\n");
  CHECK_THAT(MakeNfdLabels({.state = IommuState::kOff}, {}, mode).text, Catch::EndsWith(mode));
}

TEST_CASE("IOMMU-06: a unit that nothing isolates is a label where it is served", "[agent]") {
  Plan plan;
  Unit unit{.id = "0000:11:00.0", .state = UnitState::kReady};
  const auto label = [&] {
    plan.resources = {{.name = "x.com/t4", .units = {unit}}};
    return UnsafeLabel(plan);
  };
  CHECK(label().empty());
  unit.reason = "noiommu: UNSAFE, nothing isolates its user from the host";
  CHECK(label() == "vfio-agent/passthrough.unsafe=true\n");
  unit.state = UnitState::kHeld;
  CHECK_FALSE(label().empty());
  unit.state = UnitState::kRefused;
  CHECK(label().empty());
}

TEST_CASE("R59: the labels tell readiness, the IOMMU, and each resource's units", "[agent]") {
  Offer gone = OfferOf("nvidia.com/GH100_H100", 7, 2);
  gone.units.back().withdrawn = kBoot;  // listed only because a pod may have it
  const NfdLabels labels = MakeNfdLabels(kIntelOn, {gone, OfferOf("nvidia.com/tesla-t4", 0, 1)});
  CHECK(labels.text ==
        "vfio-agent/passthrough.ready=true\n"
        "vfio-agent/iommu=intel\n"
        "vfio-agent/GH100_H100.units=8\n"
        "vfio-agent/GH100_H100.healthy=7\n"
        "vfio-agent/tesla-t4.units=1\n"
        "vfio-agent/tesla-t4.healthy=0\n");
  CHECK(labels.problems.empty());
}

TEST_CASE("what a resource gives in two ways, while it goes from one to the other, counts together",
          "[agent]") {
  const NfdLabels labels =
      MakeNfdLabels(kIntelOn, {OfferOf("nvidia.com/X", 1, 2), OfferOf("nvidia.com/X", 4, 0)});
  CHECK_THAT(labels.text, Catch::Contains("X.units=7\n") && Catch::Contains("X.healthy=5\n"));
  CHECK(labels.problems.empty());
}

TEST_CASE("R59: without a healthy unit a node is not ready, without an IOMMU it says so",
          "[agent]") {
  CHECK(MakeNfdLabels({.state = IommuState::kOff}, {OfferOf("nvidia.com/X", 0, 8)}).text ==
        "vfio-agent/passthrough.ready=false\n"
        "vfio-agent/iommu=off\n"
        "vfio-agent/X.units=8\n"
        "vfio-agent/X.healthy=0\n");
}

TEST_CASE("R59: every label is one that Kubernetes takes, however long the resource's name",
          "[agent]") {
  const std::string part =
      GENERATE(as<std::string>{}, "3182", "a", std::string(63, 'A'),
               "A" + std::string(60, '_') + "B", "a.b-c_d", std::string(54, 'x') + "._-._-y");
  const NfdLabels labels = MakeNfdLabels(kIntelOn, {OfferOf("nvidia.com/" + part, 1, 0)});
  const std::regex line(
      "vfio-agent/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?="
      "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?");
  const std::vector<std::string> lines = absl::StrSplit(labels.text, '\n', absl::SkipEmpty());
  CHECK(lines.size() == 4);
  for (const std::string& text : lines) {
    CAPTURE(text);
    CHECK(std::regex_match(text, line));
  }
}

TEST_CASE("R59: resources whose labels would be the same, or too many, are left out and told",
          "[agent]") {
  const NfdLabels same =
      MakeNfdLabels(kIntelOn, {OfferOf("amd.com/X", 1, 0), OfferOf("nvidia.com/X", 2, 0)});
  CHECK_THAT(same.text, Catch::Contains("X.units=1") && !Catch::Contains("X.units=2"));
  REQUIRE(same.problems.size() == 1);
  CHECK_THAT(same.problems[0], Catch::StartsWith("nvidia.com/X: "));

  std::vector<Offer> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(OfferOf(absl::StrFormat("nvidia.com/%04d%s", i, std::string(40, 'x')), 1, 0));
  }
  const NfdLabels cut = MakeNfdLabels(kIntelOn, many);
  CHECK(NfdText(cut.text, kStart).size() < 65536);
  CHECK(NfdText(cut.text, kStart).size() > 65000);
  CHECK(cut.text.back() == '\n');
  REQUIRE(cut.problems.size() == 1);
  CHECK_THAT(cut.problems[0], Catch::Contains("64 KiB"));
}

TEST_CASE("R59: the file's first line says until when it is good, in UTC", "[agent]") {
  CHECK(NfdText("vfio-agent/iommu=amd\n", kStart) ==
        "# +expiry-time=2027-01-15T08:00:00Z\nvfio-agent/iommu=amd\n");
  CHECK(NfdValidity(absl::Seconds(1)) == absl::Minutes(10));
  CHECK(NfdValidity(absl::Hours(1)) == absl::Hours(3));
}

TEST_CASE("R59: the file is written whole, for NFD to read, and nothing else is left beside it",
          "[agent]") {
  Place place;
  CHECK(place.Update("vfio-agent/iommu=amd\n", {}).empty());
  CHECK(ReadAll(place.path) == NfdText("vfio-agent/iommu=amd\n", kStart + kValid));
  CHECK((fs::status(place.path).permissions() & fs::perms::others_read) != fs::perms::none);
  CHECK(std::distance(fs::directory_iterator(place.dir), {}) == 1);
  // What a crash has left half-way has a name at which NFD does not look.
  std::ofstream(place.dir + "/.vfio-agent.tmp") << "half";
  CHECK(place.Update("vfio-agent/iommu=intel\n", absl::Seconds(5)).empty());
  CHECK_FALSE(fs::exists(place.dir + "/.vfio-agent.tmp"));
}

TEST_CASE("R59: the same labels are written again only when half of their time is over",
          "[agent]") {
  Place place;
  place.Update("vfio-agent/iommu=amd\n", {});
  const auto first = fs::last_write_time(place.path);
  const std::string text = ReadAll(place.path);
  place.Update("vfio-agent/iommu=amd\n", kValid / 2 - absl::Seconds(1));
  CHECK(fs::last_write_time(place.path) == first);
  CHECK(place.file.due() == absl::InfiniteFuture());
  place.Update("vfio-agent/iommu=amd\n", kValid / 2);
  CHECK(ReadAll(place.path) == NfdText("vfio-agent/iommu=amd\n", kStart + kValid * 1.5));
  CHECK(ReadAll(place.path) != text);
}

TEST_CASE("R59: a clock that is set right has the file written anew", "[agent]") {
  Place place;
  const absl::Duration step = GENERATE(-absl::Hours(2), absl::Hours(2));
  place.Update("vfio-agent/iommu=amd\n", {});
  place.file.Update(place.dir, {.text = "vfio-agent/iommu=amd\n"}, kValid,
                    {.steady = kBoot + absl::Seconds(5), .wall = kStart + step});
  CHECK(ReadAll(place.path) == NfdText("vfio-agent/iommu=amd\n", kStart + step + kValid));
}

TEST_CASE("R59: what somebody has done to the file is put right", "[agent]") {
  Place place;
  place.Update("vfio-agent/iommu=amd\n", {});
  const std::string text = ReadAll(place.path);
  SECTION("changed") { std::ofstream(place.path) << "x=y\n"; }
  SECTION("lengthened") { std::ofstream(place.path, std::ios::app) << "x=y\n"; }
  SECTION("removed") { fs::remove(place.path); }
  SECTION("with its directory") { fs::remove_all(place.dir); }
  place.Update("vfio-agent/iommu=amd\n", absl::Seconds(3));
  CHECK_THAT(ReadAll(place.path), Catch::EndsWith("Z\nvfio-agent/iommu=amd\n"));
}

TEST_CASE("T27: two changes in a row are two seconds apart, and the second is not lost",
          "[agent]") {
  Place place;
  place.Update("vfio-agent/X.healthy=1\n", {});
  place.Update("vfio-agent/X.healthy=2\n", absl::Seconds(0.5));
  CHECK_THAT(ReadAll(place.path), Catch::Contains("healthy=1"));
  CHECK(place.file.due() == kBoot + absl::Seconds(2));
  place.Update("vfio-agent/X.healthy=3\n", absl::Seconds(2));
  CHECK_THAT(ReadAll(place.path), Catch::Contains("healthy=3"));
  CHECK(place.file.due() == absl::InfiniteFuture());
}

TEST_CASE("R59: a directory that is named no longer loses the file, and none gets one", "[agent]") {
  Place place;
  place.Update("vfio-agent/iommu=amd\n", {});
  std::ofstream(place.dir + "/another") << "a=b\n";
  const NfdFile::Clocks later = {.steady = kBoot, .wall = kStart};
  SECTION("none") { CHECK(place.file.Update("", {}, kValid, later).empty()); }
  SECTION("another, at once") {
    const std::string other = place.scratch.path() + "/other";
    CHECK(place.file.Update(other, {.text = "a/b=c\n"}, kValid, later).empty());
    CHECK(fs::exists(other + "/vfio-agent"));
  }
  CHECK_FALSE(fs::exists(place.path));
  CHECK(fs::exists(place.dir + "/another"));
  CHECK(place.file.due() == absl::InfiniteFuture());
}

TEST_CASE("R59: what cannot be written is told once, and again after it was good", "[agent]") {
  Place place;
  const std::string blocker = place.scratch.Write("etc", "no directory");
  CHECK_THAT(place.Update("a/b=c\n", {}).at(0), Catch::Contains(blocker));
  CHECK(place.Update("a/b=c\n", absl::Seconds(1)).empty());
  fs::remove(blocker);
  CHECK(place.Update("a/b=c\n", absl::Seconds(1)).empty());
  CHECK(fs::exists(place.path));
  fs::remove_all(blocker);
  place.scratch.Write("etc", "no directory");
  CHECK(place.Update("a/b=c\n", absl::Seconds(9)).size() == 1);
}

}  // namespace
}  // namespace vfio_agent
