#include "agent/topology/drawing.h"

#include <catch2/catch.hpp>

#include "agent/topology/markup.h"
#include "agent/topology/render.h"
#include "test/iommu/hardware.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

Picture Board() {
  Picture picture;
  picture.facts = MakeHardware({
      {.address = "0000:10:01.0", .type = RootPort()},
      {.address = "0000:11:00.0", .type = Upstream(), .parent = "0000:10:01.0"},
      {.address = "0000:12:00.0", .type = Downstream(), .parent = "0000:11:00.0"},
      {.address = "0000:12:01.0",
       .type = Downstream(),
       .acs = Isolating(),
       .parent = "0000:11:00.0"},
      {.address = "0000:13:00.0", .parent = "0000:12:00.0"},
      {.address = "0000:14:00.0", .parent = "0000:12:01.0"},
  });
  Find(picture.facts, "0000:13:00.0").class_code = 0x030200;
  Find(picture.facts, "0000:14:00.0").class_code = 0x020700;
  Find(picture.facts, "0000:13:00.0").numa_node = 1;
  Find(picture.facts, "0000:14:00.0").numa_node = 1;
  picture.names[{0xfffe, 0x0001}] = "<b>\"A&B\\\"</b>\x1b[31m";
  return picture;
}

Topology TopologyOf(const Picture& picture) {
  auto topology = MakeTopology(picture, {}, {});
  INFO(topology.status());
  REQUIRE(topology.ok());
  return *std::move(topology);
}

TEST_CASE("the drawing has one box for a switch, and says which port does not isolate",
          "[topology]") {
  const Picture picture = Board();
  const std::vector<Drawn> drawn = DrawTopology(TopologyOf(picture), picture.facts);
  REQUIRE(drawn.size() == 1);
  CHECK(drawn[0].title == "NUMA node 1");
  REQUIRE(drawn[0].children.size() == 1);
  const Drawn& bridge = drawn[0].children[0];
  CHECK(bridge.title == "pci0000:10");
  REQUIRE(bridge.children.size() == 1);
  REQUIRE(bridge.children[0].children.size() == 1);
  const Drawn& box = bridge.children[0].children[0];
  CHECK(box.kind == Drawn::Kind::kSwitch);
  CHECK(box.title == "0000:11:00.0");
  REQUIRE(box.children.size() == 2);
  CHECK(box.children[0].by == "0000:12:00.0");
  CHECK(box.children[0].open);
  CHECK(box.children[1].by == "0000:12:01.0");
  CHECK_FALSE(box.children[1].open);
}

TEST_CASE("what nothing isolates is called UNSAFE in each rendering, and nothing else is",
          "[topology]") {
  Picture picture = Board();
  GroupPlan group{.verdict = Verdict::kBound, .resource = "x.com/gpu"};
  group.members = {{.address = At("0000:13:00.0"), .role = Role::kPrimary}};
  const bool unsafe = GENERATE(true, false);
  CAPTURE(unsafe);
  if (unsafe) group.warnings = {{.code = Code::kNoiommu}};
  picture.plan.groups = {group};
  const Topology topology = TopologyOf(picture);
  CHECK(TopologyToJson(topology)["devices"][0].contains("unsafe") == unsafe);
  CHECK_FALSE(TopologyToJson(topology)["devices"][1].contains("unsafe"));
  for (const std::string& text : {TopologyText(topology, 0), TopologyDot(topology, picture.facts),
                                  TopologySvg(topology, picture.facts)}) {
    INFO(text);
    CHECK((text.find("UNSAFE") != std::string::npos) == unsafe);
  }
}

TEST_CASE("a GPU and a NIC below one switch are a pair, and the switch is named", "[topology]") {
  const Topology topology = TopologyOf(Board());
  REQUIRE(topology.pairs.size() == 1);
  CHECK(topology.devices[topology.pairs[0].gpu].name == "GPU0");
  CHECK(topology.devices[topology.pairs[0].nic].name == "NIC0");
  CHECK(topology.pairs[0].distance == Distance::kPix);
  CHECK(topology.pairs[0].below.ToString() == "0000:11:00.0");
}

TEST_CASE("names from files do not get out of the text that they are in", "[topology]") {
  const Picture picture = Board();
  const Topology topology = TopologyOf(picture);
  const std::string svg = TopologySvg(topology, picture.facts);
  CHECK(svg.find("<b>") == std::string::npos);
  CHECK_THAT(svg, Catch::Contains("&lt;b&gt;&quot;A&amp;B"));
  const std::string dot = TopologyDot(topology, picture.facts);
  CHECK_THAT(dot, Catch::Contains("<b>\\\"A&B\\\\\\\"</b>?[31m"));
  for (const std::string& text : {svg, dot, TopologyText(topology, 0)}) {
    CHECK(text.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a comment's text cannot end the comment", "[topology]") {
  CHECK(XmlComment("a --> b") == "a - -> b");
  CHECK(XmlComment("-----").find("--") == std::string::npos);
  CHECK(XmlText("a<'\">&b") == "a&lt;&apos;&quot;&gt;&amp;b");
}

TEST_CASE("the matrix is cut into blocks that fit, and is whole where it is wide", "[topology]") {
  const size_t width = GENERATE(size_t{60}, size_t{100});
  CAPTURE(width);
  Topology topology;
  for (int i = 0; i < 40; ++i) {
    topology.devices.push_back({.name = "GPU" + std::to_string(i), .kind = DeviceKind::kGpu});
    topology.distances.emplace_back(40, Distance::kPhb);
  }
  const auto longest = [](const std::string& text) {
    size_t most = 0, begin = 0;
    for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      most = std::max(most, end - begin);
    }
    return most;
  };
  const std::string narrow = TopologyText(topology, width);
  CHECK(longest(narrow) <= width);
  CHECK_THAT(narrow, Catch::Contains("GPU39"));
  CHECK(longest(TopologyText(topology, 0)) > 200);
}

TEST_CASE("colours tell the verdicts apart", "[topology]") {
  std::vector<std::string> colours;
  for (const Verdict verdict :
       {Verdict::kBind, Verdict::kBound, Verdict::kRefused, Verdict::kUnselected}) {
    CHECK(std::ranges::count(colours, ColourOf(verdict)) == 0);
    colours.emplace_back(ColourOf(verdict));
  }
}

}  // namespace
}  // namespace vfio_agent
