// The fake API server changes objects as the real one would: what the other tests rely on.
#include <catch2/catch.hpp>

#include "test/apiserver/object_store.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

constexpr char kApply[] = "application/apply-patch+yaml";
constexpr char kMerge[] = "application/merge-patch+json";

const ApiPath kNode = *ParseApiPath("/api/v1/nodes/n");
const ApiPath kStatus = *ParseApiPath("/api/v1/nodes/n/status");

Json Labels(const Json& labels) { return {{"metadata", {{"labels", labels}}}}; }

Json Conditions(const Json& conditions) { return {{"status", {{"conditions", conditions}}}}; }

ObjectStore WithNode() {
  ObjectStore store;
  store.Create(kNode, {{"metadata", {{"name", "n"}, {"labels", {{"a", "1"}}}}},
                       {"status", {{"conditions", Json::array({{{"type", "Ready"}}})}}}});
  return store;
}

}  // namespace

TEST_CASE("paths are taken apart as the API has them") {
  CHECK(kStatus.collection == "/api/v1/nodes");
  CHECK(kStatus.subresource == "status");
  const ApiPath event = *ParseApiPath("/apis/events.k8s.io/v1/namespaces/default/events/e");
  CHECK(event.collection == "/apis/events.k8s.io/v1/namespaces/default/events");
  CHECK(event.resource == "events");
  CHECK(event.name == "e");
  CHECK(ParseApiPath("/api/v1/nodes")->name.empty());
  CHECK(ParseApiPath("/api/v1/namespaces/x")->resource == "namespaces");
  CHECK_FALSE(ParseApiPath("/api/v1"));
  CHECK_FALSE(ParseApiPath("/api/v1/nodes/n/status/x"));
  CHECK(ParseQuery("a=b%3Dc&d").at("a") == "b=c");
}

TEST_CASE("server-side apply sets its own fields and takes back what it no longer names") {
  ObjectStore store = WithNode();
  store.Patch(kNode, kApply, "us", Labels({{"x", "1"}, {"y", "2"}}));
  store.Patch(kNode, kApply, "them", Labels({{"z", "3"}}));
  CHECK(store.Get(kNode).body["metadata"]["labels"] ==
        Json({{"a", "1"}, {"x", "1"}, {"y", "2"}, {"z", "3"}}));
  store.Patch(kNode, kApply, "us", Labels({{"x", "9"}}));
  CHECK(store.Get(kNode).body["metadata"]["labels"] == Json({{"a", "1"}, {"x", "9"}, {"z", "3"}}));
  CHECK(store.Patch(kNode, kApply, "", Labels({})).code == 400);
}

TEST_CASE("conditions are a map by type") {
  ObjectStore store = WithNode();
  store.Patch(kStatus, kApply, "us", Conditions({{{"type", "Ours"}, {"status", "True"}}}));
  store.Patch(kStatus, kApply, "us", Conditions({{{"type", "Ours"}, {"status", "False"}}}));
  const Json both = {{{"type", "Ready"}}, {{"type", "Ours"}, {"status", "False"}}};
  CHECK(store.Get(kNode).body["status"]["conditions"] == both);
  store.Patch(kStatus, kApply, "us", {{"status", Json::object()}});
  CHECK(store.Get(kNode).body["status"]["conditions"] == Json({{{"type", "Ready"}}}));
}

TEST_CASE("the object and its status are patched apart") {
  ObjectStore store = WithNode();
  const Json both = {{"metadata", {{"labels", {{"b", "2"}}}}}, {"status", {{"phase", "x"}}}};
  store.Patch(kNode, kMerge, "", both);
  CHECK(store.Get(kNode).body["metadata"]["labels"]["b"] == "2");
  CHECK_FALSE(store.Get(kNode).body["status"].contains("phase"));
  store.Patch(kStatus, kMerge, "",
              {{"metadata", {{"labels", {{"c", "3"}}}}}, {"status", {{"phase", "x"}}}});
  CHECK_FALSE(store.Get(kNode).body["metadata"]["labels"].contains("c"));
  CHECK(store.Get(kNode).body["status"]["phase"] == "x");
}

TEST_CASE("a change has a version, no change has none, and an old one is a conflict") {
  ObjectStore store = WithNode();
  const Json before = store.Get(kNode).body;
  CHECK(store.Patch(kNode, kMerge, "", Labels({{"a", "1"}})).body == before);
  store.Patch(kNode, kMerge, "", Labels({{"a", nullptr}}));
  CHECK(store.Get(kNode).body["metadata"]["resourceVersion"] !=
        before["metadata"]["resourceVersion"]);
  CHECK(store.Replace(kNode, before).code == 409);
  CHECK(store.Create(kNode, before).code == 409);
  CHECK(store.Since(0, "/api/v1/nodes") == std::nullopt);
  CHECK(store.Since(1000, "/api/v1/nodes")->size() == 2);
  CHECK(store.Since(1000, "/api/v1/pods")->empty());
}

TEST_CASE("lists are selected by fields") {
  ObjectStore store = WithNode();
  store.Create(*ParseApiPath("/api/v1/nodes/m"), {{"spec", {{"nodeName", "x"}}}});
  const ApiPath nodes = *ParseApiPath("/api/v1/nodes");
  CHECK(store.List(nodes, "").body["items"].size() == 2);
  CHECK(store.List(nodes, "metadata.name=n").body["items"].size() == 1);
  CHECK(store.List(nodes, "metadata.name=m,spec.nodeName=y").body["items"].empty());
}

TEST_CASE("a list is told in pages of one moment, and not any more when that is forgotten") {
  ObjectStore store = WithNode();
  for (const char* name : {"a", "b", "m", "x"}) {
    store.Create(*ParseApiPath(std::string("/api/v1/nodes/") + name), {{"spec", {{"a", "b"}}}});
  }
  const ApiPath nodes = *ParseApiPath("/api/v1/nodes");
  const Json first = store.List(nodes, "spec.a=b", 2).body;
  CHECK(first["items"].size() == 2);
  CHECK(first["items"][1]["metadata"]["name"] == "b");
  CHECK(first["metadata"]["remainingItemCount"] == 2);
  const std::string token = first["metadata"]["continue"];
  store.Delete(*ParseApiPath("/api/v1/nodes/x"));
  const Json second = store.ListOn(token, 2).body;
  CHECK(second["items"][1]["metadata"]["name"] == "x");
  CHECK(second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]);
  CHECK_FALSE(second["metadata"].contains("continue"));
  store.Compact();
  CHECK(store.ListOn(token, 2).code == 410);
}

TEST_CASE("an event that breaks the API server's rules is not taken") {
  const ApiPath events = *ParseApiPath("/apis/events.k8s.io/v1/namespaces/default/events");
  const Json good = {{"metadata", {{"name", "e"}, {"namespace", "default"}}},
                     {"eventTime", "2026-01-01T00:00:00.000000Z"},
                     {"reportingController", "c"},
                     {"reportingInstance", "i"},
                     {"action", "a"},
                     {"reason", "r"},
                     {"type", "Normal"},
                     {"regarding", {{"kind", "Node"}, {"name", "n"}}}};
  CHECK(ObjectStore().Create(events, good).code == 201);
  for (const Json& patch : {Json({{"note", std::string(1025, 'x')}}), Json({{"action", nullptr}}),
                            Json({{"type", "Error"}}), Json({{"series", {{"count", 1}}}}),
                            Json({{"regarding", {{"namespace", "other"}}}})}) {
    CAPTURE(patch.dump());
    Json bad = good;
    bad.merge_patch(patch);
    CHECK(ObjectStore().Create(events, bad).code == 422);
  }
}

}  // namespace vfio_agent
