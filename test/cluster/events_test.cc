// Events of a Cluster, as an API server gets them.
#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "agent/cluster/event_queue.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

constexpr char kPodEvents[] = "/apis/events.k8s.io/v1/namespaces/vms/events";

bool Posted(ClusterStand& stand, uint64_t count) {
  return stand.WaitFor([&] { return stand.cluster().Status().events_posted == count; });
}

}  // namespace

TEST_CASE("events about the node are posted in order, and go on as series") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  CHECK(stand.WaitFor([&] { return cluster.Status().connected; }));
  cluster.Post({TestEvent("gpu-1.a"), TestEvent("gpu-1.b")});
  CHECK(Posted(stand, 2));
  cluster.Post({TestEvent("gpu-1.a", 7)});
  CHECK(Posted(stand, 3));
  const auto event = stand.server().Get(std::string(kEvents) + "/gpu-1.a");
  CHECK(event["series"]["count"] == 7);
  CHECK(event["regarding"]["uid"] == stand.server().Get(kNodePath)["metadata"]["uid"]);
  CHECK(event["reportingInstance"] == kNode);
  CHECK(stand.server().List(kEvents).size() == 2);
}

TEST_CASE("an event about a pod is posted in its namespace, with its uid") {
  ClusterStand stand;
  stand.server().Create("/api/v1/namespaces/vms/pods/vm-a", {{"metadata", {{"name", "vm-a"}}}});
  ClusterEvent event = TestEvent("vm-a.1");
  event.pod = PodRef{"vms", "vm-a", ""};
  stand.Start().Post({event});
  CHECK(Posted(stand, 1));
  const auto regarding = stand.server().Get(std::string(kPodEvents) + "/vm-a.1")["regarding"];
  CHECK(regarding["kind"] == "Pod");
  CHECK(regarding["uid"] ==
        stand.server().Get("/api/v1/namespaces/vms/pods/vm-a")["metadata"]["uid"]);
}

TEST_CASE("events that may not be posted wait, and are posted when they may") {
  ClusterStand stand;
  stand.server().Deny("create events");
  stand.Start().Post({TestEvent("gpu-1.a")});
  CHECK(stand.WaitFor([&] {
    return stand.Notes().find("lacks the rule events of events.k8s.io: create, patch") !=
           std::string::npos;
  }));
  CHECK(stand.WaitForLabel("kubernetes.io/hostname", kNode));  // all else goes on
  stand.server().Allow("create events");
  CHECK(Posted(stand, 1));
  CHECK(stand.WaitFor(
      [&] { return stand.Notes().find("post events: it works again") != std::string::npos; }));
}

TEST_CASE("with the server away a queue of events is kept, and not more than that") {
  ClusterStand stand;
  stand.server().Down();
  Cluster& cluster = stand.Start();
  constexpr int kEventCount = 600;
  for (int i = 0; i < kEventCount; ++i) cluster.Post({TestEvent(absl::StrFormat("gpu-1.%d", i))});
  CHECK(stand.WaitFor([&] {
    const ClusterStatus status = cluster.Status();
    return status.events_waiting + status.events_dropped == kEventCount;
  }));
  CHECK(cluster.Status().events_waiting <= EventQueue::kCapacity + 1);
  stand.server().Up();
  CHECK(stand.WaitFor([&] { return cluster.Status().events_waiting == 0; }));
  const ClusterStatus status = cluster.Status();
  CHECK(status.events_posted + status.events_dropped == kEventCount);
  CHECK(status.events_posted >= EventQueue::kCapacity);
  CHECK_FALSE(stand.server().Get(std::string(kEvents) + "/gpu-1.599").is_null());
}

TEST_CASE("an event that the server does not take is told, and those behind it are posted") {
  ClusterStand stand;
  stand.server().Add({.method = "POST", .code = 422});
  stand.Start().Post({TestEvent("gpu-1.a"), TestEvent("gpu-1.b")});
  CHECK(Posted(stand, 1));
  CHECK(stand.cluster().Status().events_dropped == 1);
  CHECK(stand.WaitFor(
      [&] { return stand.Notes().find("the event \"gpu-1.a\": HTTP 422") != std::string::npos; }));
}

}  // namespace vfio_agent
