// What is to be done to a group, as a job with its records.
#include "agent/work/job.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

TEST_CASE(
    "a bind takes again what a release had begun to give back, unless the group makes devices",
    "[agent]") {
  constexpr char kAudio[] = "0000:3b:00.1";
  const NodeFacts facts = Node(
      {Gpu("0000:3b:00.0", 5, "nvidia"), Function(kAudio, 5, "vfio-pci", "10de:10f8", 0x040300)});
  Custody custody = Asked(TakenFrom({{kAudio, "snd_hda_intel"}}));
  custody.records.at(At(kAudio)).releasing = true;
  GroupPlan group = GroupOf(MakePlan(facts, DefaultPolicy(), {}, custody), 5);
  REQUIRE(group.verdict == Verdict::kBind);
  CHECK_FALSE(MakeBindJob(group, facts, custody, "boot").records.at(At(kAudio)).releasing);
  group.makes_mdevs = true;
  CHECK_FALSE(MakeBindJob(group, facts, custody, "boot").records.contains(At(kAudio)));
}

}  // namespace
}  // namespace vfio_agent
