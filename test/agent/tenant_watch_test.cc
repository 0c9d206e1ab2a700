#include "agent/daemon/tenant_watch.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::UnixEpoch();
using Open = TenantWatch::Open;
constexpr absl::Duration kResync = absl::Minutes(1);

TEST_CASE("a look comes a second after it was asked for, and is not put off by more", "[agent]") {
  TenantWatch watch;
  CHECK(watch.due() == absl::InfiniteFuture());
  watch.Ask(kStart);
  watch.Ask(kStart + absl::Milliseconds(900));
  CHECK(watch.due() == kStart + absl::Seconds(1));
}

TEST_CASE("who waits for somebody's end has all processes looked at, however lately they were",
          "[agent]") {
  TenantWatch watch;
  watch.Looked(kStart, true, Open::kNothing, kResync);
  watch.AskAll(kStart + absl::Seconds(1));
  CHECK(watch.due() == kStart + absl::Seconds(2));
  CHECK(watch.WantsProcesses(kStart + absl::Seconds(2)));
}

TEST_CASE("what is not settled is looked at ever more rarely, ten seconds apart at most",
          "[agent]") {
  TenantWatch watch;
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 6; ++i) {
    watch.Looked(kStart, false, Open::kPods, kResync);
    waits.push_back(watch.due() - kStart);
  }
  CHECK(waits == std::vector<absl::Duration>{absl::Seconds(1), absl::Seconds(2), absl::Seconds(4),
                                             absl::Seconds(8), absl::Seconds(10),
                                             absl::Seconds(10)});
  watch.Looked(kStart, false, Open::kNothing, kResync);
  CHECK(watch.due() == kStart + kResync);
  watch.Looked(kStart, false, Open::kPods, kResync);
  CHECK(watch.due() == kStart + absl::Seconds(1));
}

TEST_CASE("all processes are gone through at the resync, and while one of them is waited for",
          "[agent]") {
  TenantWatch watch;
  CHECK(watch.WantsProcesses(kStart));
  watch.Looked(kStart, true, Open::kPods, kResync);
  CHECK_FALSE(watch.WantsProcesses(watch.due()));  // pods alone
  watch.Looked(kStart, false, Open::kProcesses, kResync);
  CHECK(watch.WantsProcesses(watch.due()));
  watch.Looked(kStart, true, Open::kNothing, kResync);
  CHECK(watch.due() == kStart + kResync);
  CHECK(watch.WantsProcesses(watch.due()));
}

TEST_CASE("each group of a unit counts: for its siblings, and for what is open", "[agent]") {
  const OfferedUnit bundle{.id = "a", .group = 1, .groups = {1, 2}};
  OfferedUnit other{.id = "b", .group = 2};
  CHECK(HaveSiblings({{.units = {bundle, other}}}, {"a"}));
  other.group = 3;
  CHECK_FALSE(HaveSiblings({{.units = {bundle, other}}}, {"a"}));
  Picture picture;
  picture.custody.tenancy = Tenancy{.open = {{2, {Holder{.pid = 7}}}}};
  picture.plan.resources = {{.units = {{.id = "a", .group = 1, .groups = {1, 2}}}}};
  picture.plan.resources[0].units[0].state = UnitState::kUnhealthy;
  CHECK(WhatIsOpen(picture, {}) == Open::kProcesses);
  picture.plan.resources[0].units[0].groups.clear();
  CHECK(WhatIsOpen(picture, {}) == Open::kNothing);
}

TEST_CASE("processes are looked at until the pod that was given something is listed", "[agent]") {
  Picture picture;
  picture.custody.tenancy = Tenancy{.grants = {{.unit = "a", .group = 1}}};
  CHECK(WhatIsOpen(picture, {}) == Open::kProcesses);
  picture.custody.tenancy->grants.clear();
  CHECK(WhatIsOpen(picture, {}) == Open::kNothing);
}

TEST_CASE("pods are asked for soon again while another manager hinders a bind, not beside one",
          "[agent]") {
  Picture picture;
  picture.custody.tenancy.emplace();
  picture.plan.refusals = {{.code = Code::kForeignManager}};
  CHECK(WhatIsOpen(picture, {}) == Open::kNothing);
  picture.custody.tenancy->claims.rivals = {"ops/nvidia-vfio-manager-x7k2p"};
  CHECK(WhatIsOpen(picture, {}) == Open::kPods);
  picture.plan.refusals.clear();
  CHECK(WhatIsOpen(picture, {}) == Open::kNothing);
}

}  // namespace
}  // namespace vfio_agent
