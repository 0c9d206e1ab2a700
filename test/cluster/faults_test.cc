// A Cluster and an API server that is not well.
#include <catch2/catch.hpp>

#include "sysfs/clock.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

constexpr char kNodes[] = "/api/v1/nodes";

nlohmann::json LabelPatch(const std::string& value) {
  return {{"metadata", {{"labels", {{"step", value}}}}}};
}

// Until a label that the server gets now is shown: the watch works.
bool Follows(ClusterStand& stand, const std::string& value) {
  stand.server().Merge(kNodePath, LabelPatch(value));
  return stand.WaitForLabel("step", value);
}

bool Watches(ClusterStand& stand) {
  return stand.WaitFor([&] { return stand.server().Watches() == 1; });
}

// The fault strikes the list, then a watch, then a write; each time all is well in the end.
void CheckOvercomes(const ApiFault& fault) {
  ClusterStand stand;
  ApiFault at_list = fault;
  at_list.path = kNodes;
  at_list.watch = false;
  stand.server().Add(at_list);
  ApiFault at_watch = fault;
  at_watch.watch = true;
  stand.server().Add(at_watch);
  ApiFault at_write = fault;
  at_write.method = "PATCH";
  stand.server().Add(at_write);
  Cluster& cluster = stand.Start();
  CHECK(Follows(stand, "1"));
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return cluster.Status().written && cluster.Status().connected; }));
  CHECK(stand.ConditionField("status") == "True");
  CHECK(Follows(stand, "2"));
  CHECK(stand.server().Count("PATCH", kNodePath) == 2);
  CHECK_FALSE(cluster.Status().last_error.empty());
}

}  // namespace

TEST_CASE("errors, conflicts and busy servers are overcome, at a list, a watch and a write") {
  for (const int code : {500, 503, 409, 429, 404, 302}) {
    CAPTURE(code);
    CheckOvercomes({.code = code});
  }
}

TEST_CASE("answers that are cut, empty, no JSON, too deep or too large are overcome") {
  SECTION("cut in the head") { CheckOvercomes({.cut = 10}); }
  SECTION("cut in the body") { CheckOvercomes({.cut = 150}); }
  SECTION("no JSON") { CheckOvercomes({.code = 200, .body = "<html>hello</html>"}); }
  SECTION("too deep") {
    CheckOvercomes({.code = 200, .body = "{\"a\":" + std::string(100'000, '[')});
  }
}

TEST_CASE("an answer without an end is given up at its bound") {
  ClusterStand stand;
  stand.server().Add({.path = kNodes, .code = 200, .body = std::string(5 << 20, 'x')});
  Cluster& cluster = stand.Start();
  CHECK(stand.WaitFor([&] { return cluster.Status().last_error == "the answer is too large"; }));
  CHECK(Follows(stand, "1"));
}

TEST_CASE("headers without an end are given up at their bound") {
  ClusterStand stand;
  stand.server().Add({.path = kNodes, .code = 200, .location = std::string(80'000, 'x')});
  Cluster& cluster = stand.Start();
  CHECK(stand.WaitFor([&] { return cluster.Status().last_error == "the answer is too large"; }));
  CHECK(Follows(stand, "1"));
}

TEST_CASE("a line of a watch without an end is given up at its bound") {
  ClusterStand stand;
  stand.server().Add({.watch = true, .say = std::string(5 << 20, 'x')});
  Cluster& cluster = stand.Start();
  CHECK(stand.WaitFor([&] { return cluster.Status().last_error == "the answer is too large"; }));
  CHECK(Follows(stand, "1"));
}

TEST_CASE("a slow answer is waited for, a server that hangs is given up") {
  ClusterStand stand;
  stand.options().times.answer = absl::Seconds(3);
  stand.server().Add({.path = kNodes, .watch = false, .delay = absl::Milliseconds(300)});
  Cluster& cluster = stand.Start();
  CHECK(Follows(stand, "1"));
  CHECK(cluster.Status().last_error.empty());
  stand.server().Add({.method = "PATCH", .hang = true});
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  CHECK(cluster.Status().last_error.find("timed out") != std::string::npos);
  CHECK(Follows(stand, "2"));
}

TEST_CASE("a server that is busy is asked again when it said so") {
  ClusterStand stand;
  stand.server().Add({.method = "PATCH", .code = 429, .retry_after = 1});
  Cluster& cluster = stand.Start();
  const absl::Time start = MonotonicNow();
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  CHECK(MonotonicNow() - start >= absl::Seconds(1));
  CHECK(stand.server().Count("PATCH", kNodePath) == 2);
}

TEST_CASE("a watch that is cut within a line loses nothing") {
  ClusterStand stand;
  // Behind the head, within the first event.
  stand.server().Add({.watch = true, .cut = 200});
  stand.Start();
  CHECK(Watches(stand));
  CHECK(Follows(stand, "1"));
  CHECK(stand.server().Count("GET", kNodes) >= 3);
  CHECK(stand.cluster().Status().requests.at({"list", "200"}) == 1);
}

TEST_CASE("a watch goes on where it ended, in order or not, without a new list") {
  ClusterStand stand;
  stand.Start();
  CHECK(Watches(stand));
  stand.server().EndWatches();
  CHECK(Follows(stand, "1"));
  stand.server().CutConnections();
  CHECK(Follows(stand, "2"));
  CHECK(stand.cluster().Status().requests.at({"list", "200"}) == 1);
}

TEST_CASE("a history that was forgotten means a new list; a bookmark saves it") {
  ClusterStand stand;
  stand.Start();
  CHECK(Watches(stand));
  stand.server().AddNode("gpu-2");  // the versions go on without a word to us
  stand.server().SendBookmarks();
  CHECK(Follows(stand, "1"));
  stand.server().AddNode("gpu-3");
  stand.server().SendBookmarks();
  stand.server().Compact();
  stand.server().EndWatches();
  CHECK(Follows(stand, "2"));
  CHECK(stand.cluster().Status().requests.at({"list", "200"}) == 1);
  stand.server().AddNode("gpu-4");
  stand.server().Compact();
  stand.server().EndWatches();
  CHECK(Follows(stand, "3"));
  CHECK(stand.cluster().Status().requests.at({"list", "200"}) == 2);
}

TEST_CASE("an answer of 410 means a new list") {
  ClusterStand stand;
  stand.server().Add({.watch = true, .code = 410});
  stand.Start();
  CHECK(stand.WaitFor([&] { return stand.cluster().Status().requests[{"list", "200"}] == 2; }));
  CHECK(Follows(stand, "1"));
}

TEST_CASE("garbage in a watch means a new list") {
  ClusterStand stand;
  stand.Start();
  CHECK(Watches(stand));
  stand.server().Say("garbage");
  CHECK(Follows(stand, "1"));
  CHECK(stand.cluster().Status().requests.at({"list", "200"}) == 2);
}

TEST_CASE("a server that goes and comes back is found again; meanwhile nobody runs in circles") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  CHECK(Follows(stand, "1"));
  stand.server().Down();
  CHECK(stand.WaitFor([&] { return !cluster.Status().connected; }));
  const auto failures = [&] {
    uint64_t count = 0;
    for (const auto& [request, times] : cluster.Status().requests) {
      if (request.second == "error") count += times;
    }
    return count;
  };
  CHECK(stand.WaitFor([&] { return failures() >= 8; }));
  const absl::Time start = MonotonicNow();
  const uint64_t before = failures();
  CHECK(stand.WaitFor([&] { return MonotonicNow() - start > absl::Seconds(1); }));
  const uint64_t more = failures() - before;
  // One each 100 to 200 ms by now.
  const double most = absl::FDivDuration(MonotonicNow() - start, absl::Milliseconds(100)) + 2;
  CHECK(static_cast<double>(more) <= most);
  stand.server().Up();
  CHECK(Follows(stand, "2"));
  CHECK(stand.WaitFor([&] { return cluster.Status().connected; }));
}

TEST_CASE("who may not look at Nodes is told so, and the condition is written all the same") {
  ClusterStand stand;
  stand.server().Deny("list nodes");
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return stand.ConditionField("status") == "True"; }));
  CHECK_FALSE(cluster.Status().connected);
  CHECK(stand.WaitFor([&] {
    return stand.Notes().find("lacks the rule nodes: list, watch") != std::string::npos;
  }));
  stand.server().Allow("list nodes");
  CHECK(Follows(stand, "1"));
}

TEST_CASE("who may not write is told so") {
  ClusterStand stand;
  stand.server().Deny("patch nodes/status");
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] {
    return stand.Notes().find("lacks the rule nodes and nodes/status: patch") != std::string::npos;
  }));
  CHECK(Follows(stand, "1"));
}

TEST_CASE("a shutdown is in time while every request hangs") {
  ClusterStand stand;
  stand.server().Add({.times = ApiFault::kAlways, .hang = true});
  Cluster& cluster = stand.Start();
  cluster.Post({TestEvent("gpu-1.a")});
  CHECK(stand.WaitFor([&] { return stand.server().Calls().size() >= 2; }));
  const absl::Time start = MonotonicNow();
  cluster.Shutdown(absl::Milliseconds(200));
  CHECK(MonotonicNow() - start < absl::Seconds(5));
  stand.Stop();
}

TEST_CASE("a shutdown does not wait for a server that is away") {
  ClusterStand stand;
  stand.options().times.first_pause = stand.options().times.longest_pause = absl::Minutes(1);
  stand.server().Down();
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready()});
  cluster.Post({TestEvent("gpu-1.a")});
  CHECK(stand.WaitFor([&] { return cluster.Status().requests.size() == 2; }));
  const absl::Time start = MonotonicNow();
  cluster.Shutdown(absl::Seconds(10));
  CHECK(MonotonicNow() - start < absl::Seconds(5));
}

}  // namespace vfio_agent
