#include "agent/daemon/transitions.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

Picture PictureOf(NodeFacts facts) {
  Picture picture;
  Policy policy = DefaultPolicy();
  policy.resources.push_back(
      {.name = "example.com/vf", .select = {{.address = *PciAddress::Parse("0000:01:00.4")}}});
  picture.plan = MakePlan(facts, policy, TestNames(), Asked());
  picture.facts = std::move(facts);
  return picture;
}

NodeFacts WithVf() {
  PciDevice physical = Gpu("0000:01:00.0", 1), virtual_function = Gpu("0000:01:00.4", 2);
  virtual_function.physfn = physical.address;
  physical.virtfns = {virtual_function.address};
  return Node({physical, virtual_function});
}

std::vector<Event> Gone(const NodeFacts& before, const NodeFacts& now) {
  Transitions transitions;
  transitions.Compare(PictureOf(before), {});
  std::vector<Event> events = transitions.Compare(PictureOf(now), {});
  std::erase_if(events, [](const Event& event) { return event.name != "group_gone"; });
  return events;
}

TEST_CASE("a virtual function that its device has no more is told, and is no warning", "[agent]") {
  const std::vector<Event> events = Gone(WithVf(), Node({Gpu("0000:01:00.0", 1)}));
  REQUIRE(events.size() == 1);
  CHECK(events[0].level == Level::kInfo);
  CHECK_THAT(ToText(events[0]), Catch::Contains("group=2") && Catch::Contains("0000:01:00.0") &&
                                    !Catch::Contains("rescan"));
}

TEST_CASE("a device that left the bus is a warning, with its virtual functions", "[agent]") {
  const std::vector<Event> events = Gone(WithVf(), Node({}));
  REQUIRE(events.size() == 2);
  for (const Event& event : events) {
    CHECK(event.level == Level::kWarn);
    CHECK_THAT(ToText(event), Catch::Contains("rescan"));
  }
}

}  // namespace
}  // namespace vfio_agent
