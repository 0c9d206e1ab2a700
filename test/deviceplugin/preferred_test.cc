#include "deviceplugin/offer/preferred.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "catch2/catch.hpp"

namespace vfio_agent {
namespace {

// "name:group:numa:path…": a node in one line each. Names take the place of addresses here.
OfferedUnit ParseUnit(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  OfferedUnit unit{.id = parts.at(0), .group = std::stoi(parts.at(1)), .healthy = true};
  if (parts.at(2) != "-") unit.numa_node = std::stoi(parts.at(2));
  unit.path.assign(parts.begin() + 3, parts.end());
  return unit;
}

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

std::string Prefer(const std::string& node, const std::string& available, size_t size,
                   const std::string& must = "") {
  Offer offer{.resource = "nvidia.com/X"};
  for (const std::string& unit : Words(node)) offer.units.push_back(ParseUnit(unit));
  const auto ids = PreferUnits(IndexedOffer(offer),
                               {.available = Words(available), .must = Words(must), .size = size});
  return absl::StrJoin(ids, " ");
}

// Two NUMA nodes of four GPUs, two below each of two switches.
const char kHgx[] =
    "a:1:0:r0:s0:p0 b:2:0:r0:s0:p1 c:3:0:r0:s1:p2 d:4:0:r0:s1:p3 "
    "e:5:1:r1:s2:p4 f:6:1:r1:s2:p5 g:7:1:r1:s3:p6 h:8:1:r1:s3:p7";

TEST_CASE("R49: the preferred units are close to each other and leave whole places free",
          "[deviceplugin]") {
  struct Row {
    std::string why, available;
    size_t size;
    std::string must, chosen;
  };
  const Row row = GENERATE(
      Row{"one of all: the first", "a b c d e f g h", 1, "", "a"},
      Row{"two: one switch", "a b c d e f g h", 2, "", "a b"},
      Row{"two, one switch is half taken: the other switch", "a c d e f g h", 2, "", "c d"},
      Row{"one: the switch that is half taken", "b c d e f g h", 1, "", "b"},
      Row{"one: the NUMA node that is fuller", "a b c d e f g", 1, "", "g"},
      Row{"three: one NUMA node, a whole switch of it", "b c d e f g h", 3, "", "b c d"},
      Row{"four: the only NUMA node that can", "a b c e f g h", 4, "", "e f g h"},
      Row{"five: a whole NUMA node and one more", "a b c d e f g h", 5, "", "a b c d e"},
      Row{"five, a NUMA node is broken up: the whole one and one more", "a b c d e f", 5, "",
          "a b c d e"},
      Row{"all that there is", "h g f e", 4, "", "e f g h"},
      Row{"next to what the container has", "a b c d e f g h", 2, "f", "e f"},
      Row{"the NUMA node of what the container has", "a b c d e g h", 2, "e", "e g"},
      Row{"the order of the request does not matter", "h c g b d a f e", 3, "g", "e g h"});
  CAPTURE(row.why);
  CHECK(Prefer(kHgx, row.available, row.size, row.must) == row.chosen);
}

TEST_CASE("R49: a group is not split between containers where that can be avoided",
          "[deviceplugin]") {
  // Group 1 has two units, group 4 three; c and g are alone.
  const char node[] = "a:1:0:s0 b:1:0:s0 c:2:0:s1 d:4:1:s2 e:4:1:s2 f:4:1:s2 g:3:1:s3";
  struct Row {
    std::string why, available;
    size_t size;
    std::string must, chosen;
  };
  const Row row = GENERATE(
      Row{"one: a lone group, not half of a group", "a b c d e f", 1, "", "c"},
      Row{"two: a whole group", "a b c d e f g", 2, "", "a b"},
      Row{"three: a whole group of three on one node", "a b d e f g", 3, "", "d e f"},
      Row{"four: group of three and the lone one of its node", "a b c d e f g", 4, "", "d e f g"},
      Row{"two, no whole group fits: the lone ones of both nodes", "c d e f g", 2, "", "c g"},
      Row{"one, only whole groups: one is split", "a b d e f", 1, "", "a"},
      Row{"one: what is left of a split group is the last resort", "b d e f", 1, "", "d"},
      Row{"one: and taken if nothing else is there", "b", 1, "", "b"},
      Row{"a group that the container has begun is completed", "a b c d e f g", 2, "b", "a b"},
      Row{"and then the rest is chosen", "a b c d e f g", 3, "b", "a b c"});
  CAPTURE(row.why);
  CHECK(Prefer(node, row.available, row.size, row.must) == row.chosen);
}

TEST_CASE("R49: where no answer can be right the kubelet is left alone", "[deviceplugin]") {
  CHECK(Prefer(kHgx, "a b", 3).empty());
  CHECK(Prefer(kHgx, "a b", 0).empty());
  CHECK(Prefer(kHgx, "a b c", 1, "a b").empty());
  CHECK(Prefer(kHgx, "a b", 2, "unknown").empty());
  CHECK(Prefer(kHgx, "a unknown", 2).empty());
  CHECK(Prefer(kHgx, "a unknown b", 2) == "a b");
  CHECK(Prefer(kHgx, "a b", 2, "a b") == "a b");
}

TEST_CASE("a unit that has turned unhealthy is not preferred", "[deviceplugin]") {
  Offer offer{.units = {ParseUnit("a:1:0"), ParseUnit("b:2:0")}};
  offer.units[0].healthy = false;
  CHECK(PreferUnits(IndexedOffer(offer), {.available = {"a", "b"}, .size = 1}) ==
        std::vector<std::string>{"b"});
  CHECK(PreferUnits(IndexedOffer(offer), {.available = {"a", "b"}, .size = 2}).empty());
}

TEST_CASE("units without a NUMA node are as good as any", "[deviceplugin]") {
  CHECK(Prefer("a:1:- b:2:- c:3:-", "c b a", 2) == "a b");
}

TEST_CASE("R49, T30: of 4096 units just as many as asked for are chosen, all different",
          "[deviceplugin]") {
  const bool pairs = GENERATE(false, true);
  const size_t size = GENERATE(as<size_t>(), 1, 2, 63, 1000, 4096);
  Offer offer;
  std::vector<std::string> available;
  for (int i = 0; i < 4096; ++i) {
    offer.units.push_back(ParseUnit(
        absl::StrFormat("u%d:%d:%d:r%d:s%d", i, pairs ? i / 2 : i, i / 2048, i / 512, i / 16)));
    available.push_back(offer.units.back().id);
  }
  auto ids = PreferUnits(IndexedOffer(offer), {.available = available, .size = size});
  CHECK(ids.size() == size);
  std::ranges::sort(ids);
  CHECK(std::ranges::adjacent_find(ids) == ids.end());
}

}  // namespace
}  // namespace vfio_agent
