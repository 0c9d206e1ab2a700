// A log that one thing cannot fill.
#include "agent/daemon/log_limit.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr int kBurst = 30;

Event Flap(const std::string& unit, const std::string& reason = "") {
  Event event{.level = Level::kWarn, .name = "unit_unhealthy"};
  return event.With("resource", "a.com/x").With("unit", unit).With("reason", reason);
}

std::string FieldOf(const Event& event, const std::string& key) {
  for (const auto& [name, value] : event.fields) {
    if (name == key) return value;
  }
  return "";
}

// How many of `count` such events at once are written at once.
int Admitted(LogLimit& limit, const Event& event, int count) {
  int admitted = 0;
  for (int i = 0; i < count; ++i) admitted += limit.Admit(event, kStart) ? 1 : 0;
  return admitted;
}

TEST_CASE(
    "of what happens over and over thirty lines are written at once, then one each two seconds",
    "[log]") {
  LogLimit limit;
  CHECK(Admitted(limit, Flap("a"), 100) == kBurst);
  CHECK(limit.Due(kStart + absl::Seconds(1)).empty());
  CHECK(limit.due() > kStart + absl::Seconds(1));
  CHECK(limit.due() < kStart + absl::Seconds(2.1));
  CHECK(limit.Due(kStart + absl::Seconds(2.1)).size() == 1);
  CHECK(limit.due() == absl::InfiniteFuture());
}

TEST_CASE("the last line that was held back is told with how many before it were not", "[log]") {
  LogLimit limit;
  Admitted(limit, Flap("a"), kBurst);
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(limit.Admit(Flap("a", std::to_string(i)), kStart + absl::Milliseconds(i)));
  }
  const std::vector<Event> told = limit.Due(kStart + absl::Seconds(3));
  REQUIRE(told.size() == 1);
  CHECK(told[0].name == "unit_unhealthy");
  CHECK(FieldOf(told[0], "reason") == "4");
  CHECK(FieldOf(told[0], "suppressed") == "4");
  CHECK(FieldOf(told[0], "late") == "2.9s");
}

TEST_CASE("every line is written, or counted in one that is", "[log]") {
  LogLimit limit;
  int written = 0, counted = 0;
  const auto note = [&](const Event& event) {
    ++written;
    const std::string suppressed = FieldOf(event, "suppressed");
    if (!suppressed.empty()) counted += std::stoi(suppressed);
  };
  constexpr int kAll = 1000;
  absl::Time now = kStart;
  for (int i = 0; i < kAll; ++i, now += absl::Milliseconds(37)) {
    for (const Event& event : limit.Due(now)) note(event);
    if (const auto event = limit.Admit(Flap("a"), now)) note(*event);
  }
  for (const Event& event : limit.Rest(now)) note(event);
  CHECK(written + counted == kAll);
  CHECK(counted > kAll / 2);
}

TEST_CASE("nobody's lines are held back for another's sake", "[log]") {
  LogLimit limit;
  CHECK(Admitted(limit, Flap("a"), 100) == kBurst);
  CHECK(limit.Admit(Flap("b"), kStart).has_value());
  Event held = Flap("a");  // another thing to know of the same unit
  held.name = "unit_held";
  CHECK(limit.Admit(held, kStart).has_value());
  for (int group = 0; group < 10000; ++group) {
    Event ready{.name = "group_ready"};
    REQUIRE(limit.Admit(ready.With("group", std::to_string(group)), kStart).has_value());
  }
}

Event Named(const std::string& name, const std::string& key, const std::string& value) {
  Event event{.name = name};
  return event.With(key, value);
}

TEST_CASE("the last line about a state is the state that the thing is in", "[log]") {
  // Each pair with what else differs between the two. The last has no group number.
  const Event bad[] = {Flap("a", "driver-changed"),
                       Named("bind_failed", "group", "17").With("device", "0000:1b:00.0"),
                       Named("group_refused", "group", "17").With("code", "held"),
                       Named("config_rejected", "err", "line 3"),
                       Named("register_failed", "resource", "a.com/x").With("err", "no"),
                       Named("list_closed", "resource", "a.com/x").With("err", "reset"),
                       Named("register_contended", "resource", "a.com/x").With("ids", "1,2"),
                       Named("pods_unknown", "why", "no answer"),
                       Named("unit_held", "unit", "a").With("pod", "p"),
                       Named("group_gone", "group", "17").With("what", "group 17"),
                       Named("group_refused", "members", "0000:1b:00.0").With("code", "held")};
  const Event good[] = {Named("unit_healthy", "unit", "a"),
                        Named("bind_done", "group", "17"),
                        Named("group_ready", "group", "17").With("resource", "a.com/x"),
                        Named("config_reloaded", "config", "/etc/x"),
                        Named("registered", "resource", "a.com/x").With("text", "by call"),
                        Named("list_opened", "resource", "a.com/x"),
                        Named("contention_over", "resource", "a.com/x"),
                        Event{.name = "pods_known"},
                        Named("unit_free", "unit", "a"),
                        Named("group_ready", "group", "17").With("resource", "a.com/x"),
                        Named("group_left", "members", "0000:1b:00.0")};
  for (size_t i = 0; i < std::size(bad); ++i) {
    CAPTURE(bad[i].name);
    LogLimit limit;
    Admitted(limit, bad[i], kBurst);
    CHECK_FALSE(limit.Admit(bad[i], kStart));
    CHECK_FALSE(limit.Admit(good[i], kStart));
    const std::vector<Event> told = limit.Due(kStart + absl::Seconds(3));
    REQUIRE(told.size() == 1);
    CHECK(told[0].name == good[i].name);
    CHECK(FieldOf(told[0], "suppressed") == "1");
  }
}

TEST_CASE("what was held back is told in the order in which it happened", "[log]") {
  for (const bool end : {false, true}) {
    LogLimit limit;
    for (const char* const unit : {"a", "b", "c"}) Admitted(limit, Flap(unit), kBurst);
    for (const char* const unit : {"b", "c", "a"}) CHECK_FALSE(limit.Admit(Flap(unit), kStart));
    const absl::Time later = kStart + absl::Seconds(3);
    std::string order;
    for (const Event& event : end ? limit.Rest(later) : limit.Due(later)) {
      order += FieldOf(event, "unit");
    }
    CHECK(order == "bca");
    CHECK(limit.due() == absl::InfiniteFuture());
  }
}

}  // namespace
}  // namespace vfio_agent
