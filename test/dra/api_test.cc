#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "absl/strings/str_format.h"
#include "agent/dra/dra_api.h"
#include "agent/dra/slices.h"
#include "test/apiserver/fake_api_server.h"
#include "test/dra/claim_json.h"
#include "test/dra/scratch.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
const ClaimRef kRef = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"};

std::vector<DraDevice> Many(size_t count) {
  std::vector<DraDevice> devices;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = absl::StrFormat("device-%03d", i);
    devices.push_back({.name = name, .resource = "nvidia.com/X", .unit = name});
  }
  return devices;
}

// An API server with the Node node-1, and the agent's side of it.
struct Cluster1 {
  FakeApiServer server;
  Scratch scratch;
  std::unique_ptr<DraApi> api;

  Cluster1() {
    server.AddNode("node-1");
    server.WriteServiceAccount(scratch.path());
    Start();
  }
  void Start() {
    ClusterOptions cluster{.node_name = "node-1",
                           .server = server.url(),
                           .token_file = scratch.At("token"),
                           .ca_file = scratch.At("ca.crt")};
    cluster.times.first_pause = absl::Milliseconds(20);
    cluster.times.longest_pause = absl::Milliseconds(200);
    auto started = DraApi::Start({.cluster = cluster, .driver = "vfio-agent"}, [] {});
    REQUIRE(started.ok());
    api = *std::move(started);
  }
  std::string NodeUid() const { return server.Get("/api/v1/nodes/node-1")["metadata"]["uid"]; }
  std::vector<json> Slices() const { return server.List(kSlices); }
  int64_t Generation() const { return Slices()[0]["spec"]["pool"]["generation"]; }
  // So many slices, all of one generation which is at least this.
  bool WaitSlices(size_t count, int64_t generation) const {
    return server.WaitFor([&] {
      const std::vector<json> slices = Slices();
      if (slices.size() != count) return false;
      for (const json& slice : slices) {
        const json& pool = slice["spec"]["pool"];
        if (pool["generation"] < generation || pool["resourceSliceCount"] != count ||
            pool["generation"] != slices[0]["spec"]["pool"]["generation"]) {
          return false;
        }
      }
      return true;
    });
  }
  absl::StatusOr<std::string> Fetch(const ClaimRef& claim) const {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::StatusOr<std::string>> answer;
    api->FetchClaim(claim, [&](absl::StatusOr<std::string> text) {
      const std::lock_guard lock(mutex);
      answer = std::move(text);
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    const bool told =
        changed.wait_for(lock, std::chrono::seconds(20), [&] { return answer.has_value(); });
    REQUIRE(told);
    return *answer;
  }
};

TEST_CASE("the API server is told of the devices, as the Node's", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(130));
  REQUIRE(cluster.WaitSlices(2, 1));
  const json slice = cluster.Slices()[0];
  CHECK(slice["spec"]["nodeName"] == "node-1");
  CHECK(slice["spec"]["devices"].size() == 128);
  CHECK(slice["metadata"]["ownerReferences"][0]["uid"] == cluster.NodeUid());
}

TEST_CASE("slices that the kubelet has wiped are published again", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(1));
  REQUIRE(cluster.WaitSlices(1, 1));
  const int64_t generation = cluster.Generation();
  cluster.server.Delete(std::string(kSlices) + "/node-1-vfio-agent-0");
  CHECK(cluster.WaitSlices(1, generation + 1));
}

TEST_CASE("what somebody else has written is put right", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(1));
  REQUIRE(cluster.WaitSlices(1, 1));
  const int64_t generation = cluster.Generation();
  cluster.server.Merge(std::string(kSlices) + "/node-1-vfio-agent-0",
                       {{"metadata", {{"annotations", {{kContentAnnotation, "other"}}}}}});
  CHECK(cluster.WaitSlices(1, generation + 1));
}

TEST_CASE("a device that changes makes a new generation, and no device none", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(130));
  REQUIRE(cluster.WaitSlices(2, 1));
  std::vector<DraDevice> devices = Many(2);
  devices[0].taint = "driver-changed";
  cluster.api->Want(devices);
  REQUIRE(cluster.WaitSlices(1, 2));
  CHECK(cluster.Slices()[0]["spec"]["devices"][0].contains("taints"));
  cluster.api->Want({});
  CHECK(cluster.WaitSlices(0, 0));
}

TEST_CASE("the next agent leaves alone what stands as it should", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(1));
  REQUIRE(cluster.WaitSlices(1, 1));
  cluster.api.reset();
  const int writes = cluster.server.Count("PATCH", kSlices);
  cluster.Start();
  cluster.api->Want(Many(1));
  REQUIRE(cluster.server.WaitFor([&] { return cluster.api->written(); }));
  CHECK(cluster.server.Count("PATCH", kSlices) == writes);
}

TEST_CASE("what is not wanted any more stands until it was deleted", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(1));
  REQUIRE(cluster.server.WaitFor([&] { return cluster.api->written(); }));
  cluster.api->Want(Many(1));
  CHECK(cluster.api->written());
  cluster.server.Deny("delete resourceslices");
  cluster.api->Want({});
  CHECK_FALSE(cluster.api->written());
  REQUIRE(cluster.server.WaitFor([&] { return cluster.server.Count("DELETE", kSlices) > 0; }));
  CHECK_FALSE(cluster.api->written());
  cluster.server.Allow("delete resourceslices");
  CHECK(cluster.WaitSlices(0, 0));
}

TEST_CASE("slices of other nodes and drivers are not ours", "[dra]") {
  Cluster1 cluster;
  const json other = {{"apiVersion", "resource.k8s.io/v1"},
                      {"kind", "ResourceSlice"},
                      {"metadata", {{"name", "other"}}},
                      {"spec", {{"driver", "gpu.example.com"}, {"nodeName", "node-1"}}}};
  cluster.server.Create(std::string(kSlices) + "/other", other);
  cluster.api->Want({});
  cluster.api->Want(Many(1));
  REQUIRE(cluster.server.WaitFor([&] { return cluster.Slices().size() == 2; }));
  cluster.api->Want({});
  REQUIRE(cluster.server.WaitFor([&] { return cluster.Slices().size() == 1; }));
  CHECK(cluster.Slices()[0]["metadata"]["name"] == "other");
}

TEST_CASE("slices are listed in pages, and anew where the rest of a list has expired", "[dra]") {
  Cluster1 cluster;
  cluster.api.reset();
  for (int i = 0; i < 25; ++i) {
    const std::string name = absl::StrFormat("left-by-another-%02d", i);
    cluster.server.Create(std::string(kSlices) + "/" + name,
                          {{"metadata", {{"name", name}}},
                           {"spec", {{"driver", "vfio-agent"}, {"nodeName", "node-1"}}}});
  }
  const bool fails = GENERATE(false, true);
  if (fails) cluster.server.Add({.path = kSlices, .query = "continue=", .code = 410});
  cluster.Start();
  cluster.api->Want(Many(1));
  // All that no longer hold are known, and go.
  REQUIRE(cluster.WaitSlices(1, 1));
  int continued = 0;
  for (const HttpCall& call : cluster.server.Calls()) {
    if (call.query.find("continue=") == std::string::npos) continue;
    CHECK_THAT(call.query, Contains("spec.driver%3Dvfio-agent&limit=10&continue="));
    ++continued;
  }
  CHECK(continued == (fails ? 3 : 2));
}

TEST_CASE("an API server that fails in passing is asked until it answers", "[dra]") {
  Cluster1 cluster;
  ApiFault fault{.path = kSlices, .times = 3};
  SECTION("it is overloaded") { fault.code = 429; }
  SECTION("it fails") { fault.code = 500; }
  SECTION("it tells of a conflict") {
    fault.method = "PATCH";
    fault.code = 409;
  }
  SECTION("the connection breaks") { fault.cut = 10; }
  SECTION("the history is gone") {
    fault.watch = true;
    fault.code = 410;
  }
  cluster.server.Add(fault);
  cluster.api->Want(Many(1));
  REQUIRE(cluster.WaitSlices(1, 1));
  cluster.server.EndWatches();
  cluster.api->Want(Many(2));
  CHECK(cluster.server.WaitFor([&] { return cluster.Slices()[0]["spec"]["devices"].size() == 2; }));
}

TEST_CASE("a role that lacks something is told, with what it lacks", "[dra]") {
  Cluster1 cluster;
  cluster.server.Deny("patch resourceslices");
  cluster.api->Want(Many(1));
  std::string notes;
  REQUIRE(cluster.server.WaitFor([&] {
    for (const std::string& note : cluster.api->TakeNotes()) notes += note;
    return !notes.empty();
  }));
  CHECK_THAT(notes, Contains("resourceslices of resource.k8s.io: create, patch, delete"));
  cluster.server.Allow("patch resourceslices");
  CHECK(cluster.WaitSlices(1, 1));
}

TEST_CASE("why slices are not written is known as long as they are not", "[dra]") {
  Cluster1 cluster;
  const std::string denied = GENERATE("list", "patch");
  cluster.server.Deny(denied + " resourceslices");
  cluster.api->Want(Many(1));
  REQUIRE(cluster.server.WaitFor([&] { return !cluster.api->slices().failure.empty(); }));
  CHECK_THAT(cluster.api->slices().failure,
             Contains("ResourceSlices") && Contains("lacks the rule resourceslices"));
  CHECK_FALSE(cluster.api->slices().some);
  cluster.server.Allow(denied + " resourceslices");
  REQUIRE(cluster.server.WaitFor([&] { return cluster.api->slices().some; }));
  CHECK(cluster.server.WaitFor([&] { return cluster.api->slices().failure.empty(); }));
}

TEST_CASE("slices that stand do not go with the right to change them", "[dra]") {
  Cluster1 cluster;
  cluster.api->Want(Many(1));
  REQUIRE(cluster.server.WaitFor([&] { return cluster.api->written(); }));
  cluster.server.Deny("patch resourceslices");
  cluster.api->Want(Many(2));
  REQUIRE(cluster.server.WaitFor([&] { return !cluster.api->slices().failure.empty(); }));
  CHECK(cluster.api->slices().some);
}

TEST_CASE("without the right to see the Node the slices are nobody's", "[dra]") {
  Cluster1 cluster;
  cluster.server.Deny("get nodes");
  cluster.api->Want(Many(1));
  REQUIRE(cluster.WaitSlices(1, 1));
  CHECK_FALSE(cluster.Slices()[0]["metadata"].contains("ownerReferences"));
}

TEST_CASE("a claim is read as it is now", "[dra]") {
  Cluster1 cluster;
  CHECK(absl::IsNotFound(cluster.Fetch(kRef).status()));
  cluster.server.Create("/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/vm-gpu",
                        ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}}));
  const auto text = cluster.Fetch(kRef);
  REQUIRE(text.ok());
  CHECK_THAT(*text, Contains("0000-3b-00-0"));
  cluster.server.Deny("get resourceclaims");
  CHECK(absl::IsPermissionDenied(cluster.Fetch(kRef).status()));
}

TEST_CASE("an agent that stops waits for no claim", "[dra]") {
  Cluster1 cluster;
  cluster.server.Add({.path = "/apis/resource.k8s.io/v1/namespaces", .times = 1, .hang = true});
  bool called = false;
  cluster.api->FetchClaim(kRef, [&called](const absl::StatusOr<std::string>&) { called = true; });
  REQUIRE(cluster.server.WaitFor(
      [&] { return cluster.server.Count("GET", "/apis/resource.k8s.io/v1/namespaces") > 0; }));
  cluster.api->Shutdown(absl::Seconds(5));
  CHECK_FALSE(called);
}

}  // namespace
}  // namespace vfio_agent
