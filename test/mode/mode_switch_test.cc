// The way from mode to mode, rule by rule.
#include "agent/mode/mode_switch.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000);

// A node in vm-passthrough with two units that container has no use for.
struct Way {
  explicit Way(ModeMemory memory = {.mode = Mode::kPassthrough}) : way(memory) {
    view.wanted = Mode::kContainer;
    view.listed = true;
    view.now = kStart;
  }
  ModeDecision Step(absl::Duration later = absl::Seconds(1)) {
    view.now += later;
    return way.Step(view);
  }
  // As if somebody had looked since.
  ModeDecision StepAfterLook(absl::Duration later = absl::Seconds(1)) {
    view.now += later;
    view.looked = view.now;
    return way.Step(view);
  }
  Mode mode() const { return way.memory().mode; }

  ModeView view;
  ModeSwitch way;
};

TEST_CASE("a mode that is wanted and in force is ready, and what is planned may be written",
          "[mode]") {
  Way node;
  node.view.wanted = Mode::kPassthrough;
  CHECK(node.Step() == ModeDecision{.write = true, .state = ModeState::kReady});
  CHECK(node.way.memory() == ModeMemory{.mode = Mode::kPassthrough});
}

TEST_CASE("a switch begins with withholding, and nothing is written before it is over", "[mode]") {
  Way node;
  const ModeDecision first = node.Step();
  CHECK(first.withhold == Mode::kContainer);
  CHECK_FALSE(first.write);
  CHECK(first.state == ModeState::kSwitching);
  CHECK_THAT(first.reason, Catch::Contains("the kubelet is told"));
  CHECK(node.mode() == Mode::kPassthrough);
  CHECK(node.way.memory().target == Mode::kContainer);
}

TEST_CASE("a look from before the withholding says nothing of who came after it", "[mode]") {
  Way node;
  node.view.looked = kStart + absl::Seconds(1);  // in the very picture in which it begins
  node.Step();
  node.view.cut_short = true;
  CHECK_THAT(node.Step().reason, Catch::Contains("waits for processes: looking at them does not"));
  CHECK(node.mode() == Mode::kPassthrough);
  node.StepAfterLook();
  CHECK(node.mode() == Mode::kContainer);
}

TEST_CASE("a switch waits until the kubelet counts none of the units any more", "[mode]") {
  Way node;
  node.view.advertised = {"0000:65:00.0"};
  node.Step();
  const ModeDecision counted = node.StepAfterLook();
  CHECK_THAT(counted.reason, Catch::Contains("still counts 0000:65:00.0"));
  CHECK(node.mode() == Mode::kPassthrough);
  node.view.advertised.clear();
  node.StepAfterLook();
  CHECK(node.mode() == Mode::kContainer);
}

TEST_CASE(
    "a kubelet that counts the units for too long blocks the switch, and pods are named first",
    "[mode]") {
  Way node;
  node.view.wait_for_holders = absl::Minutes(1);
  node.view.advertised = {"0000:65:00.0"};
  node.Step();
  CHECK(node.StepAfterLook().state == ModeState::kSwitching);
  const ModeDecision blocked = node.StepAfterLook(absl::Minutes(1));
  CHECK(blocked.state == ModeState::kBlocked);
  CHECK_THAT(blocked.reason, Catch::StartsWith("waits for the kubelet, which still counts"));
  node.view.tenants = {"pod a/b"};
  CHECK_THAT(node.StepAfterLook().reason, Catch::StartsWith("waits for pod a/b, the kubelet"));
}

TEST_CASE("a switch waits for whoever has a unit, for ever if it is not told otherwise", "[mode]") {
  Way node;
  node.view.tenants = {"pod a/b"};
  node.Step();
  for (int day = 0; day < 3; ++day) {
    const ModeDecision held = node.StepAfterLook(absl::Hours(24));
    CHECK(held.state == ModeState::kSwitching);
    CHECK(held.withhold == Mode::kContainer);
    CHECK_THAT(held.reason, Catch::Contains("waits for pod a/b"));
    CHECK(held.next == absl::InfiniteFuture());
  }
  CHECK(node.mode() == Mode::kPassthrough);
}

TEST_CASE("a switch that has waited long enough is blocked, withholds, and goes on when free",
          "[mode]") {
  Way node;
  node.view.wait_for_holders = absl::Minutes(1);
  node.view.tenants = {"pod a/b"};
  node.Step();
  const ModeDecision waits = node.StepAfterLook();
  CHECK(waits.state == ModeState::kSwitching);
  CHECK(waits.next == node.view.now + absl::Minutes(1));
  const ModeDecision blocked = node.StepAfterLook(absl::Minutes(1));
  CHECK(blocked.state == ModeState::kBlocked);
  CHECK(blocked.withhold == Mode::kContainer);
  CHECK(blocked.next == absl::InfiniteFuture());
  CHECK_FALSE(blocked.write);
  node.view.tenants.clear();
  CHECK(node.StepAfterLook().state == ModeState::kSwitching);
  CHECK(node.mode() == Mode::kContainer);
}

TEST_CASE("nothing goes that ResourceSlices may still give to claims", "[mode]") {
  Way node;
  node.StepAfterLook();
  node.view.sliced = {"0000:3b:00.0"};
  SECTION("while it is withheld") {
    CHECK(node.StepAfterLook().reason ==
          "waits for the API server, whose ResourceSlices may still give 0000:3b:00.0");
    CHECK(node.mode() == Mode::kPassthrough);
  }
  SECTION("when an agent starts in the mode that gives it back") {
    node.view.sliced.clear();
    node.StepAfterLook();
    REQUIRE(node.mode() == Mode::kContainer);
    node.view.to_release = 1;
    node.view.sliced = {"0000:3b:00.0"};
    CHECK_THAT(node.StepAfterLook().reason, Catch::Contains("whose ResourceSlices"));
  }
  node.view.sliced.clear();
  node.StepAfterLook();
  CHECK(node.mode() == Mode::kContainer);
}

TEST_CASE("where nothing of what goes is listed, nobody is waited for", "[mode]") {
  Way node;
  node.view.listed = false;
  node.Step();
  CHECK(node.mode() == Mode::kContainer);
}

TEST_CASE("the new mode's work begins with a picture that is planned by it", "[mode]") {
  Way node;
  node.view.listed = false;
  CHECK_FALSE(node.Step().write);
  node.view.to_release = 2;
  const ModeDecision next = node.Step();
  CHECK(next.write);
  CHECK(next.withhold == std::nullopt);
  CHECK(next.state == ModeState::kSwitching);
  CHECK_THAT(next.reason, Catch::Contains("given back"));
}

TEST_CASE("a mode is ready when all is given back or bound, and not before", "[mode]") {
  Way node({.mode = Mode::kContainer, .target = Mode::kContainer});
  SECTION("given back") { node.view.to_release = 1; }
  SECTION("bound") { node.view.to_bind = 1; }
  SECTION("left by a holder") { node.view.holders = {"group 1 is in use by pid 5"}; }
  CHECK(node.Step().state == ModeState::kSwitching);
  node.view.to_release = node.view.to_bind = 0;
  node.view.holders.clear();
  CHECK(node.Step() == ModeDecision{.write = true, .state = ModeState::kReady});
  CHECK(node.way.memory().target == std::nullopt);
}

TEST_CASE("devices that are to be bound later do not unmake a mode that is ready", "[mode]") {
  Way node;
  node.view.wanted = Mode::kPassthrough;
  node.view.to_bind = 1;
  node.view.holders = {"a process"};
  node.view.stuck = {"a write"};
  CHECK(node.Step().state == ModeState::kReady);
}

TEST_CASE("what is to be given back unmakes a mode that was ready", "[mode]") {
  Way node({.mode = Mode::kContainer});
  node.view.to_release = 1;
  CHECK(node.Step().state == ModeState::kSwitching);
  CHECK(node.way.memory().target == Mode::kContainer);
}

TEST_CASE("a write that does not return blocks the mode, and the others go on", "[mode]") {
  Way node({.mode = Mode::kContainer, .target = Mode::kContainer});
  node.view.to_release = 2;
  node.view.stuck = {"group 7: the kernel has not returned"};
  const ModeDecision stuck = node.Step();
  CHECK(stuck.state == ModeState::kBlocked);
  CHECK(stuck.write);
  CHECK_THAT(stuck.reason, Catch::Contains("group 7"));
}

TEST_CASE("who has what is left in the new mode is waited for as before", "[mode]") {
  Way node({.mode = Mode::kContainer, .target = Mode::kContainer});
  node.view.wait_for_holders = absl::Seconds(30);
  node.view.to_release = 1;
  node.view.holders = {"group 1 is in use by pid 5"};
  CHECK(node.Step().state == ModeState::kSwitching);
  CHECK(node.Step(absl::Seconds(30)).state == ModeState::kBlocked);
  node.view.holders.clear();
  CHECK(node.Step().state == ModeState::kSwitching);
  node.view.holders = {"group 1 is in use by pid 6"};  // the time runs anew
  CHECK(node.Step().state == ModeState::kSwitching);
}

TEST_CASE("going back while units are withheld gives them free again, without a write between",
          "[mode]") {
  Way node;
  node.view.tenants = {"pod a/b"};
  node.Step();
  node.StepAfterLook();
  node.view.wanted = Mode::kPassthrough;
  const ModeDecision back = node.Step();
  CHECK(back == ModeDecision{.write = true, .state = ModeState::kReady});
  CHECK(node.way.memory() == ModeMemory{.mode = Mode::kPassthrough});
}

TEST_CASE("going back while devices are given back binds them again", "[mode]") {
  Way node({.mode = Mode::kContainer, .target = Mode::kContainer});
  node.view.listed = false;
  node.view.to_release = 3;
  node.Step();
  node.view.wanted = Mode::kPassthrough;
  node.Step();
  CHECK(node.mode() == Mode::kPassthrough);
  node.view.to_release = 0;
  node.view.to_bind = 2;
  const ModeDecision bind = node.Step();
  CHECK(bind.write);
  CHECK_THAT(bind.reason, Catch::Contains("bound"));
  node.view.to_bind = 0;
  CHECK(node.Step().state == ModeState::kReady);
}

TEST_CASE("a third mode takes the place of the one that was on its way, and is looked for anew",
          "[mode]") {
  Way node;
  node.view.tenants = {"pod a/b"};
  node.Step();
  node.StepAfterLook();
  node.view.tenants.clear();
  node.view.wanted = Mode::kVgpu;
  CHECK(node.Step().withhold == Mode::kVgpu);
  CHECK(node.mode() == Mode::kPassthrough);
  node.StepAfterLook();
  CHECK(node.mode() == Mode::kVgpu);
}

TEST_CASE("while it is not known what is wanted nothing is written, and what is served stays",
          "[mode]") {
  Way node;
  node.view.wanted = std::nullopt;
  node.view.why_unknown = "not read";
  node.view.wait_until = kStart + absl::Hours(1);
  CHECK(node.Step() == ModeDecision{.reason = "not read", .next = kStart + absl::Hours(1)});
  CHECK(node.way.memory() == ModeMemory{.mode = Mode::kPassthrough});
}

TEST_CASE("an agent that was killed on the way withholds from its first picture on", "[mode]") {
  Way node({.mode = Mode::kPassthrough, .target = Mode::kContainer});
  node.view.wanted = std::nullopt;
  node.view.looked = kStart + absl::Seconds(1);
  CHECK(node.Step().withhold == Mode::kContainer);
  SECTION("it goes on where it is still wanted") {
    node.view.wanted = Mode::kContainer;
    node.Step();
    CHECK(node.mode() == Mode::kPassthrough);  // nobody has looked since
    node.StepAfterLook();
    CHECK(node.mode() == Mode::kContainer);
  }
  SECTION("it goes back where it is not") {
    node.view.wanted = Mode::kPassthrough;
    CHECK(node.Step().state == ModeState::kReady);
  }
  SECTION("a label that has just changed keeps it from going on") {
    node.StepAfterLook();
    node.StepAfterLook();
    CHECK(node.mode() == Mode::kPassthrough);
  }
}

TEST_CASE("a reason names four at most and counts the rest", "[mode]") {
  Way node;
  node.view.tenants = {"a", "b", "c", "d", "e", "f"};
  node.Step();
  CHECK(node.StepAfterLook().reason == "waits for a, b, c, d and 2 more");
}

}  // namespace
}  // namespace vfio_agent
