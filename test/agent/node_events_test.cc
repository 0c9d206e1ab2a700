// Which lines of the log become Events, and what they say.
#include "agent/cluster/node_events.h"

#include <catch2/catch.hpp>

#include "agent/daemon/dra_room.h"
#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

GroupPlan RefusedGroup() {
  GroupPlan group{.group = 14, .verdict = Verdict::kRefused, .resource = "nvidia.com/T4"};
  group.members.push_back({.address = *PciAddress::Parse("0000:02:00.0"), .role = Role::kPrimary});
  group.refusals = {{.code = Code::kForeignMember,
                     .group = 14,
                     .text = "0000:02:00.1 is foreign",
                     .remedy = "allow it"},
                    {.code = Code::kBootDisplay, .group = 14, .text = "it shows the console"}};
  return group;
}

TEST_CASE("a refused group is a warning by its first code, with what to do about it",
          "[node-events]") {
  const auto event = ToNodeEvent(GroupSeen(RefusedGroup()));
  REQUIRE(event);
  CHECK(event->reason == "ForeignMember");
  CHECK(event->type == "Warning");
  CHECK(event->action == "Plan");
  CHECK(event->subject == "group 14");
  CHECK(event->note ==
        "group 14 (0000:02:00.0) is refused: 0000:02:00.1 is foreign; it shows the console. "
        "Remedy: allow it; ");
  CHECK(event->units.empty());
}

TEST_CASE("a code is told in UpperCamelCase", "[node-events]") {
  CHECK(ReasonOf("in-use-network") == "InUseNetwork");
  CHECK(ReasonOf("pf-has-vfs") == "PfHasVfs");
  CHECK(ReasonOf("held") == "Held");
}

TEST_CASE("a bind that failed says the step, the command, the error and what happens next",
          "[node-events]") {
  Event line{.level = Level::kError, .name = "bind_failed"};
  line.With("group", "23").With("members", "0000:1b:00.0").With("step", "3/5");
  line.With("try", "echo 0000:1b:00.0 > unbind").With("code", "probe-refused");
  line.With("err", "no driver took it").With("errno", "EBUSY").With("holder", "pid 7");
  line.With("remedy", "see dmesg").With("next", "tried again in 2s");
  const auto event = ToNodeEvent(line);
  REQUIRE(event);
  CHECK(event->reason == "ProbeRefused");
  CHECK(event->action == "Bind");
  CHECK(event->note ==
        "group 23 (0000:1b:00.0) was not bound: no driver took it; EBUSY; step 3/5; held by pid 7; "
        "try by hand: echo 0000:1b:00.0 > unbind. Remedy: see dmesg. Next: tried again in 2s");
}

TEST_CASE("without a code the reason is what happened", "[node-events]") {
  Event line{.name = "bind_done"};
  const auto event = ToNodeEvent(line.With("group", "23"));
  REQUIRE(event);
  CHECK(event->reason == "Bound");
  CHECK(event->type == "Normal");
  CHECK(event->note == "group 23 is bound");
}

TEST_CASE("what is unfit is told by the code in its reason; a sibling in use is no warning",
          "[node-events]") {
  OfferedUnit unit{.id = "0000:11:00.0", .group = 29, .reason = "driver-changed: it is nvidia's"};
  auto event = ToNodeEvent(UnitSeen("nvidia.com/T4", unit));
  REQUIRE(event);
  CHECK(event->reason == "DriverChanged");
  CHECK(event->type == "Warning");
  CHECK(event->subject == "unit 0000:11:00.0");
  unit.reason = "group-split: a sibling is held";
  event = ToNodeEvent(UnitSeen("nvidia.com/T4", unit));
  REQUIRE(event);
  CHECK(event->reason == "GroupSplit");
  CHECK(event->type == "Normal");
}

TEST_CASE("what was refused to a pod says which units of which resource", "[node-events]") {
  const auto event = ToNodeEvent(PluginSeen({.kind = PluginEvent::Kind::kPreStartRefused,
                                             .resource = "nvidia.com/T4",
                                             .ids = {"0000:11:00.0", "0000:12:00.0"},
                                             .text = "node-missing: /dev/vfio/29 is not there"}));
  REQUIRE(event);
  CHECK(event->reason == "NodeMissing");
  CHECK(event->action == "Start");
  CHECK(event->resource == "nvidia.com/T4");
  CHECK(event->units == std::vector<std::string>{"0000:11:00.0", "0000:12:00.0"});
}

TEST_CASE("a refused Allocate is told of no pod: whoever has the units is another",
          "[node-events]") {
  const auto event = ToNodeEvent(PluginSeen({.kind = PluginEvent::Kind::kAllocateRefused,
                                             .resource = "nvidia.com/T4",
                                             .ids = {"0000:11:00.0"},
                                             .text = "held: pod team/vm has it"}));
  REQUIRE(event);
  CHECK(event->reason == "Held");
  CHECK(event->units.empty());
  CHECK_THAT(event->note, Catch::StartsWith("0000:11:00.0 of nvidia.com/T4 was not given"));
}

TEST_CASE("two warnings about devices of one group are two things", "[node-events]") {
  Refusal warning{.code = Code::kNoReset,
                  .group = 3,
                  .address = PciAddress::Parse("0000:02:00.0").value(),
                  .text = "x"};
  const auto first = ToNodeEvent(WarningSeen(warning));
  warning.address = PciAddress::Parse("0000:02:00.1").value();
  const auto second = ToNodeEvent(WarningSeen(warning));
  REQUIRE((first && second));
  CHECK(first->subject != second->subject);
}

TEST_CASE("what only a reader of the log wants is not told, the client's own troubles least of all",
          "[node-events]") {
  for (const char* name : {"note", "list_opened", "allocated", "bind_started", "unit_held"}) {
    CAPTURE(name);
    CHECK_FALSE(ToNodeEvent({.name = name}));
  }
}

TEST_CASE("a note is one line that the API server takes, and its remedy stays", "[node-events]") {
  Event line{.name = "group_refused"};
  line.With("group", "3").With("code", "held").With("err", std::string(5000, 'x') + "\n\x1b[2J");
  line.With("remedy", std::string(400, 'r') + "\n!");
  const auto event = ToNodeEvent(line);
  REQUIRE(event);
  CHECK(event->note.size() <= kLongestNote);
  CHECK_THAT(event->note, Catch::Contains("xxx...") && Catch::EndsWith("rrr?!"));
  CHECK(event->note.find_first_of("\n\x1b") == std::string::npos);
  line.fields.back().second = std::string(5000, 'r');
  CHECK(ToNodeEvent(line)->note.size() <= kLongestNote);
}

TEST_CASE("a claim that is not prepared is an event of its pod, where that is known",
          "[node-events]") {
  ClaimEvent seen{.kind = ClaimEvent::Kind::kPrepareFailed,
                  .claim = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"},
                  .text = "held: somebody has it",
                  .pod = ClaimPod{.name = "vm", .uid = "u-7"}};
  auto event = ToNodeEvent(ClaimSeen(seen));
  REQUIRE(event);
  CHECK(event->reason == "Held");
  CHECK(event->type == "Warning");
  CHECK(event->action == "Prepare");
  CHECK(event->subject == "claim team/vm-gpu u-1");
  CHECK_THAT(event->note, Catch::StartsWith(
                              "ResourceClaim team/vm-gpu was not prepared: held: somebody has it"));
  CHECK(event->pod == PodRef{.pod_namespace = "team", .name = "vm", .uid = "u-7"});
  seen.pod.reset();
  CHECK_FALSE(ToNodeEvent(ClaimSeen(seen))->pod);
  seen.text = "the API server does not answer";
  CHECK(ToNodeEvent(ClaimSeen(seen))->reason == "ClaimRefused");
  seen.kind = ClaimEvent::Kind::kUnprepareFailed;
  event = ToNodeEvent(ClaimSeen(seen));
  REQUIRE(event);
  CHECK(event->reason == "UnprepareFailed");
  CHECK_THAT(event->note, Catch::Contains("was not taken back"));
  seen.kind = ClaimEvent::Kind::kPrepared;
  CHECK_FALSE(ToNodeEvent(ClaimSeen(seen)));
}

TEST_CASE("what a switch waits for now is an Event of its own, which names it", "[node-events]") {
  ModeStatus mode{.mode = "vm-passthrough",
                  .target = "container",
                  .state = "switching",
                  .reason = "the kubelet is told that no unit is to be given any more"};
  const auto first = ToNodeEvent(ModeSeen(mode));
  mode.reason = "waits for pod team/vm1, which has 0000:1b:00.0";
  const auto next = ToNodeEvent(ModeSeen(mode));
  REQUIRE(first);
  REQUIRE(next);
  CHECK(first->reason == "ModeSwitching");
  CHECK(next->reason == "ModeSwitching");
  CHECK(first->subject != next->subject);
  CHECK(next->note ==
        "this node changes its mode: mode container; waits for pod team/vm1, which has "
        "0000:1b:00.0");
  CHECK(ToNodeEvent(ModeSeen(mode))->subject == next->subject);
}

TEST_CASE("each mode that is ready has its own Event, and so has each label that is none",
          "[node-events]") {
  const auto ready = [](const std::string& mode) {
    return ToNodeEvent(ModeSeen({.mode = mode, .target = mode, .state = "ready"}));
  };
  CHECK(ready("container")->subject != ready("vm-passthrough")->subject);
  CHECK(ready("container")->note == "this node is in its mode: mode container");
  const auto invalid = [](const std::string& value) {
    return ToNodeEvent(ModeInvalid("example.com/mode", value, Mode::kContainer));
  };
  CHECK(invalid("vm_passthrough")->subject != invalid("vm-vgpus")->subject);
  CHECK(invalid("vm_passthrough")->type == "Warning");
}

TEST_CASE("what a mode withholds takes no Event from the node", "[node-events]") {
  OfferedUnit unit{.id = "0000:11:00.0", .group = 29, .reason = "mode: switching to container"};
  CHECK_FALSE(ToNodeEvent(UnitSeen("nvidia.com/T4", unit)));
  unit.reason = "power-d3cold: it is off";
  CHECK(ToNodeEvent(UnitSeen("nvidia.com/T4", unit)));
}

}  // namespace
}  // namespace vfio_agent
