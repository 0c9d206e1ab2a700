#include "agent/daemon/retries.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const absl::Time kNow = absl::UnixEpoch();

Plan PlanOf(int group, const char* driver) {
  GroupPlan plan{.group = group, .verdict = Verdict::kBind};
  plan.members.push_back({.address = *PciAddress::Parse("0000:01:00.0"), .driver = driver});
  return {.groups = {plan}};
}

TEST_CASE("a group that fails again and again waits longer each time, up to five minutes",
          "[agent]") {
  Retries retries(1);
  absl::Duration last;
  for (int i = 0; i < 8; ++i) {
    const absl::Duration wait = retries.Failed(7, kNow);
    CHECK(wait > last * 1.5);
    CHECK(retries.NextTry(7) == kNow + wait);
    last = wait;
  }
  for (int i = 0; i < 40; ++i) CHECK(retries.Failed(7, kNow) <= absl::Minutes(6));
  CHECK(retries.Failed(7, kNow) >= absl::Minutes(5));
}

TEST_CASE("a group that failed counts as failing until it works or changes", "[agent]") {
  Retries retries(1);
  CHECK_FALSE(retries.IsFailing(7));
  retries.Wait(7, kNow);  // for somebody else: no failure
  CHECK_FALSE(retries.IsFailing(7));
  retries.Failed(7, kNow);
  CHECK(retries.IsFailing(7));
  retries.Succeeded(7);
  CHECK_FALSE(retries.IsFailing(7));
}

TEST_CASE("a group that only a job knows, a mediated device's, waits like the others", "[agent]") {
  Retries retries(1);
  retries.Failed(40, kNow);
  retries.See(PlanOf(7, "nvidia"), {Job{.group = 40}});
  CHECK(retries.NextTry(40) > kNow);
  retries.See(PlanOf(7, "nvidia"));
  CHECK(retries.NextTry(40) == absl::InfinitePast());
}

TEST_CASE("a group whose next try is under way keeps its back-off for the one after it",
          "[agent]") {
  Retries retries(1);
  const absl::Duration first = retries.Failed(40, kNow);
  retries.See(PlanOf(7, "nvidia"), {}, {40});  // the job has left the work, and is no group's
  CHECK(retries.Failed(40, kNow) > first * 1.5);
}

TEST_CASE("groups that failed together do not come back together", "[agent]") {
  Retries retries(1);
  CHECK(retries.Failed(1, kNow) != retries.Failed(2, kNow));
}

TEST_CASE("a change of the group's facts ends its waiting, and nothing else does", "[agent]") {
  Retries retries(1);
  retries.Failed(7, kNow);
  retries.See(PlanOf(7, "nvidia"));  // how the failure left it
  retries.See(PlanOf(7, "nvidia"));
  CHECK(retries.NextTry(7) > kNow);
  retries.See(PlanOf(7, "nouveau"));
  CHECK(retries.NextTry(7) <= kNow);
}

TEST_CASE("a group that is gone is forgotten", "[agent]") {
  Retries retries(1);
  retries.Failed(7, kNow);
  retries.See(Plan{});
  CHECK(retries.NextTry(7) <= kNow);
}

TEST_CASE("the same failure is news once, until the group has worked", "[agent]") {
  Retries retries(1);
  CHECK(retries.IsNews(7, "EBUSY"));
  CHECK_FALSE(retries.IsNews(7, "EBUSY"));
  CHECK(retries.IsNews(7, "EIO"));
  retries.Succeeded(7);
  CHECK(retries.IsNews(7, "EBUSY"));
}

}  // namespace
}  // namespace vfio_agent
