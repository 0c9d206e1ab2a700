// Few Events of much that happens.
#include "agent/cluster/event_series.h"

#include <catch2/catch.hpp>
#include <regex>
#include <set>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

const absl::Time kBoot = absl::FromUnixSeconds(100);
const absl::Time kWall = absl::FromUnixSeconds(1'800'000'000);
constexpr char kNode[] = "gpu-7.example";

EventSeries::Clocks At(absl::Duration since) {
  return {.steady = kBoot + since, .wall = kWall + since};
}

NodeEvent Failed(int group, const std::string& note = "x") {
  return {.reason = "ProbeRefused",
          .type = "Warning",
          .action = "Bind",
          .subject = absl::StrFormat("group %d", group),
          .note = note};
}

TEST_CASE("what fails a thousand times is one Event whose count goes up in ever longer steps",
          "[event-series]") {
  EventSeries series(kNode);
  std::vector<ClusterEvent> told;
  for (int i = 0; i < 1000; ++i) {
    const auto now = At(absl::Seconds(i));
    series.Add(Failed(23), std::nullopt, now);
    for (ClusterEvent& event : series.Due(now)) told.push_back(std::move(event));
  }
  REQUIRE(told.size() == 7);  // at 0, 10, 30, 70, 150, 310 and 630 seconds
  std::set<std::string> names;
  for (const ClusterEvent& event : told) names.insert(event.name);
  CHECK(names.size() == 1);
  CHECK(told[0].count == 1);
  CHECK(told[1].count == 11);
  CHECK(told[6].count == 631);
  CHECK(told[6].first == kWall);
  CHECK(told[6].last == kWall + absl::Seconds(630));
  const auto last = series.Due(At(absl::Hours(1)));
  REQUIRE(last.size() == 1);
  CHECK(last[0].count == 1000);
  CHECK(series.due() == absl::InfiniteFuture());
}

TEST_CASE("a step is never longer than half an hour", "[event-series]") {
  EventSeries series(kNode);
  absl::Duration longest, last;
  for (absl::Duration at; at < absl::Hours(12); at += absl::Minutes(1)) {
    series.Add(Failed(23), std::nullopt, At(at));
    if (series.Due(At(at)).empty()) continue;
    longest = std::max(longest, at - last);
    last = at;
  }
  CHECK(longest > absl::Minutes(20));
  CHECK(longest <= absl::Minutes(30));
}

TEST_CASE("another group, reason or pod is another Event", "[event-series]") {
  EventSeries series(kNode);
  series.Add(Failed(1), std::nullopt, At({}));
  series.Add(Failed(2), std::nullopt, At({}));
  NodeEvent other = Failed(1);
  other.reason = "UnbindTimeout";
  series.Add(other, std::nullopt, At({}));
  series.Add(Failed(1), PodRef{"team", "vm", "u-1"}, At({}));
  const auto told = series.Due(At({}));
  REQUIRE(told.size() == 4);
  std::set<std::string> names;
  for (const ClusterEvent& event : told) names.insert(event.name);
  CHECK(names.size() == 4);
  CHECK(told[3].pod == PodRef{"team", "vm", "u-1"});
  CHECK(told[3].name.starts_with("vm."));
}

TEST_CASE("names are a DNS subdomain and never come again", "[event-series]") {
  const std::regex good("[a-z0-9]([-a-z0-9.]*[a-z0-9])?");
  std::set<std::string> names;
  for (const std::string& node :
       {std::string(kNode), std::string(253, 'n'), "a." + std::string(234, 'b') + ".c"}) {
    for (int start = 0; start < 2; ++start) {
      EventSeries series(node);
      series.Add(Failed(1), std::nullopt, At(absl::Milliseconds(start)));
      const auto told = series.Due(At(absl::Milliseconds(start)));
      REQUIRE(told.size() == 1);
      CHECK(told[0].name.size() <= 253);
      CHECK(std::regex_match(told[0].name, good));
      names.insert(told[0].name);
    }
  }
  CHECK(names.size() == 6);
}

TEST_CASE("what comes again after three quarters of an hour is a new Event", "[event-series]") {
  EventSeries series(kNode);
  series.Add(Failed(1), std::nullopt, At({}));
  const std::string name = series.Due(At({}))[0].name;
  series.Add(Failed(1), std::nullopt, At(absl::Minutes(44)));
  CHECK(series.Due(At(absl::Minutes(44)))[0].name == name);
  series.Add(Failed(1), std::nullopt, At(absl::Minutes(90)));
  const auto told = series.Due(At(absl::Minutes(90)));
  REQUIRE(told.size() == 1);
  CHECK(told[0].name != name);
  CHECK(told[0].count == 1);
}

TEST_CASE("a node has 25 new Events at once, then one each five minutes, warnings first",
          "[event-series]") {
  EventSeries series(kNode);
  NodeEvent bound{.reason = "Bound", .type = "Normal", .action = "Bind", .subject = "group 0"};
  series.Add(bound, std::nullopt, At({}));
  for (int i = 1; i <= 27; ++i) series.Add(Failed(i), std::nullopt, At({}));
  auto told = series.Due(At({}));
  CHECK(told.size() == 25);
  for (const ClusterEvent& event : told) CHECK(event.type == "Warning");
  // Another object has its own.
  series.Add(Failed(1), PodRef{"team", "vm", ""}, At({}));
  CHECK(series.Due(At({})).size() == 1);
  CHECK(series.due() > kBoot + absl::Minutes(4.9));
  CHECK(series.due() < kBoot + absl::Minutes(5.1));
  // What waits is counted meanwhile.
  for (int i = 0; i < 9; ++i) series.Add(Failed(26), std::nullopt, At(absl::Minutes(1)));
  told = series.Due(At(absl::Minutes(5) + absl::Seconds(1)));
  REQUIRE(told.size() == 1);
  CHECK(told[0].count == 10);
  CHECK(series.Due(At(absl::Minutes(10) + absl::Seconds(2))).size() == 1);
  told = series.Due(At(absl::Minutes(15) + absl::Seconds(3)));
  REQUIRE(told.size() == 1);
  CHECK(told[0].reason == "Bound");
}

TEST_CASE("what is due is waited for, and nothing else", "[event-series]") {
  EventSeries series(kNode);
  CHECK(series.due() == absl::InfiniteFuture());
  series.Add(Failed(1), std::nullopt, At({}));
  CHECK(series.due() <= kBoot);
  series.Due(At({}));
  CHECK(series.due() == absl::InfiniteFuture());
  series.Add(Failed(1), std::nullopt, At(absl::Seconds(1)));
  CHECK(series.due() == kBoot + absl::Seconds(10));
}

TEST_CASE("ten thousand things that happen keep to 256 series and are counted", "[event-series]") {
  EventSeries series(kNode);
  for (int i = 0; i < 10'000; ++i) series.Add(Failed(i), std::nullopt, At({}));
  CHECK(series.dropped() == 10'000 - 256);
  CHECK(series.Due(At({})).size() == 25);
  // Those that were told make room, the quietest first.
  series.Add(Failed(20'000), std::nullopt, At(absl::Seconds(1)));
  CHECK(series.dropped() == 10'000 - 256);
}

}  // namespace
}  // namespace vfio_agent
