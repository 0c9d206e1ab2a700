// Which request an event becomes, and what follows its answer: values, no server.
#include "agent/cluster/event_queue.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

using Kind = EventCall::Kind;

const absl::Time kNow = absl::FromUnixSeconds(1000);

EventQueue NewQueue() {
  return EventQueue({.node = kNode, .instance = "vfio-agent-x7k2p"},
                    {.first = absl::Seconds(1), .longest = absl::Minutes(1), .seed = 5});
}

ClusterEvent PodEvent(const std::string& uid = "") {
  ClusterEvent event = TestEvent("gpu-1.pod");
  event.pod = PodRef{"vms", "virt-launcher-a", uid};
  return event;
}

// The next request, which there is.
EventCall Call(EventQueue& queue, absl::Time now = kNow) { return queue.Next(now).value(); }

void PostOne(EventQueue& queue, const std::string& name) {
  queue.Post({TestEvent(name)});
  CHECK(Call(queue).kind == Kind::kCreate);
  queue.OnAnswer(Success("{}", 201), kNow);
}

}  // namespace

TEST_CASE("an event about the node is created as events.k8s.io has it") {
  EventQueue queue = NewQueue();
  CHECK(queue.due() == absl::InfiniteFuture());
  queue.NodeIs("u-1");
  queue.Post({TestEvent("gpu-1.a")});
  const EventCall call = Call(queue);
  CHECK(call.path == kEvents);
  CHECK(
      call.document.dump() ==
      R"({"action":"Bind","apiVersion":"events.k8s.io/v1","eventTime":"2026-09-21T14:13:20.000000Z",)"
      R"("kind":"Event","metadata":{"name":"gpu-1.a","namespace":"default"},)"
      R"("note":"group 14: foreign-member","reason":"GroupRefused",)"
      R"("regarding":{"apiVersion":"v1","kind":"Node","name":"gpu-1","uid":"u-1"},)"
      R"("reportingController":"vfio-agent","reportingInstance":"vfio-agent-x7k2p",)"
      R"("type":"Warning"})");
  CHECK(queue.waiting() == 1);
  CHECK_FALSE(queue.Next(kNow));
  queue.OnAnswer(Success("{}", 201), kNow);
  CHECK(queue.posted() == 1);
  CHECK(queue.waiting() == 0);
}

TEST_CASE("an event that is posted again is told as a series") {
  EventQueue queue = NewQueue();
  PostOne(queue, "gpu-1.a");
  queue.Post({TestEvent("gpu-1.a", 5)});
  const EventCall call = Call(queue);
  CHECK(call.kind == Kind::kSeries);
  CHECK(call.path == std::string(kEvents) + "/gpu-1.a");
  CHECK(call.document.dump() ==
        R"({"series":{"count":5,"lastObservedTime":"2026-09-21T14:13:25.000000Z"}})");
  // The API server has forgotten it meanwhile.
  queue.OnAnswer(Failure(404), kNow);
  const EventCall again = Call(queue);
  CHECK(again.kind == Kind::kCreate);
  CHECK(again.document["series"]["count"] == 5);
  queue.OnAnswer(Success("{}", 201), kNow);
  CHECK(queue.posted() == 2);
}

TEST_CASE(
    "an event that is there already is patched, or was posted by a try whose answer got lost") {
  EventQueue queue = NewQueue();
  queue.Post({TestEvent("gpu-1.a", 3), TestEvent("gpu-1.b")});
  Call(queue);
  queue.OnAnswer(Failure(409, "exists", "AlreadyExists"), kNow);
  CHECK(Call(queue).kind == Kind::kSeries);
  queue.OnAnswer(Success("{}"), kNow);
  CHECK(Call(queue).kind == Kind::kCreate);
  queue.OnAnswer(Failure(409, "exists", "AlreadyExists"), kNow);
  CHECK(queue.posted() == 2);
  CHECK(queue.waiting() == 0);
}

TEST_CASE("an API server that says now this and now that gets no endless requests") {
  EventQueue queue = NewQueue();
  queue.Post({TestEvent("gpu-1.a", 3)});
  int calls = 0;
  while (const auto call = queue.Next(kNow)) {
    REQUIRE(++calls < 10);
    queue.OnAnswer(call->kind == Kind::kCreate ? Failure(409, "", "AlreadyExists") : Failure(404),
                   kNow);
  }
  CHECK(queue.dropped() == 1);
}

TEST_CASE("an event about a pod has the pod's uid, which the API server is asked for") {
  EventQueue queue = NewQueue();
  queue.Post({PodEvent()});
  const EventCall ask = Call(queue);
  CHECK(ask.kind == Kind::kFindPod);
  CHECK(ask.path == "/api/v1/namespaces/vms/pods/virt-launcher-a");
  queue.OnAnswer(Success(R"({"metadata":{"uid":"p-1"}})"), kNow);
  const EventCall call = Call(queue);
  CHECK(call.path == "/apis/events.k8s.io/v1/namespaces/vms/events");
  CHECK(
      call.document["regarding"].dump() ==
      R"({"apiVersion":"v1","kind":"Pod","name":"virt-launcher-a","namespace":"vms","uid":"p-1"})");
  EventQueue knows = NewQueue();
  knows.Post({PodEvent("p-2")});
  CHECK(Call(knows).kind == Kind::kCreate);
}

TEST_CASE("a pod that has gone, or may not be looked at, is known by its name") {
  for (const int code : {403, 404}) {
    EventQueue queue = NewQueue();
    queue.Post({PodEvent()});
    Call(queue);
    queue.OnAnswer(Failure(code), kNow);
    const EventCall call = Call(queue);
    CHECK(call.kind == Kind::kCreate);
    CHECK_FALSE(call.document["regarding"].contains("uid"));
  }
  EventQueue queue = NewQueue();
  queue.Post({PodEvent()});
  Call(queue);
  queue.OnAnswer(Failure(500), kNow);
  CHECK_FALSE(queue.Next(kNow));
  CHECK(Call(queue, kNow + absl::Seconds(1)).kind == Kind::kFindPod);
}

TEST_CASE("what may pass is tried again, in order; what cannot is given up with the reason") {
  for (const ApiAnswer& answer : {NoAnswer(), Failure(401), Failure(429)}) {
    CAPTURE(answer.code);
    EventQueue queue = NewQueue();
    queue.Post({TestEvent("gpu-1.a"), TestEvent("gpu-1.b")});
    Call(queue);
    queue.OnAnswer(answer, kNow);
    CHECK_FALSE(queue.status().ok());
    CHECK(queue.waiting() == 2);
    CHECK(queue.due() <= kNow + absl::Minutes(1));
    CHECK(Call(queue, queue.due()).document["metadata"]["name"] == "gpu-1.a");
    queue.OnAnswer(Success("{}", 201), kNow);
    CHECK(queue.status().ok());
  }
  for (const ApiAnswer& answer :
       {Failure(422), Failure(400), Failure(404), Failure(413),
        Failure(403,
                "unable to create new content in namespace x because it is being terminated")}) {
    CAPTURE(answer.code);
    EventQueue queue = NewQueue();
    queue.Post({TestEvent("gpu-1.a")});
    Call(queue);
    queue.OnAnswer(Failure(500), kNow);
    CHECK_FALSE(queue.status().ok());
    Call(queue, queue.due());
    queue.OnAnswer(answer, kNow);
    CHECK(queue.status().ok());
    CHECK(queue.waiting() == 0);
    CHECK(queue.dropped() == 1);
    CHECK(queue.TakeLost().size() == 1);
    CHECK(queue.TakeLost().empty());
  }
}

TEST_CASE("an event that the server does not take lets the others go first, and is given up") {
  for (const int code : {403, 409, 500}) {
    CAPTURE(code);
    EventQueue queue = NewQueue();
    queue.Post({TestEvent("gpu-1.a"), TestEvent("gpu-1.b")});
    absl::Time now = kNow;
    int tries = 0;
    for (; queue.waiting() > 0 && tries < 20; now = queue.due()) {
      const bool bad = Call(queue, now).document["metadata"]["name"] == "gpu-1.a";
      CHECK((bad || tries == 1));
      queue.OnAnswer(bad ? Failure(code) : Success("{}", 201), now);
      if (bad) ++tries;
    }
    CHECK(tries == 10);
    CHECK(queue.posted() == 1);
    CHECK(queue.dropped() == 1);
    CHECK(queue.TakeLost().size() == 1);
  }
}

TEST_CASE("what comes again while it waits for another try is one event, with the newer count") {
  EventQueue queue = NewQueue();
  queue.Post({TestEvent("gpu-1.a"), TestEvent("gpu-1.b")});
  Call(queue);
  queue.Post({TestEvent("gpu-1.a", 2)});
  queue.OnAnswer(Failure(500), kNow);
  CHECK(queue.waiting() == 2);
  CHECK(Call(queue, queue.due()).document["metadata"]["name"] == "gpu-1.b");
  queue.OnAnswer(Success("{}", 201), kNow);
  CHECK(Call(queue, queue.due()).document["series"]["count"] == 2);
}

TEST_CASE("a server that is unavailable for hours loses no event") {
  EventQueue queue = NewQueue();
  queue.Post({TestEvent("gpu-1.a")});
  absl::Time now = kNow;
  for (int i = 0; i < 100; ++i, now = queue.due()) {
    Call(queue, now);
    queue.OnAnswer(i % 2 == 0 ? Failure(503) : NoAnswer(), now);
  }
  CHECK(queue.waiting() == 1);
}

TEST_CASE("an event that a pod's namespace forbids is given up at once") {
  EventQueue queue = NewQueue();
  queue.Post({PodEvent("p-1"), TestEvent("gpu-1.b")});
  Call(queue);
  queue.OnAnswer(Failure(403, "exceeded quota"), kNow);
  CHECK(queue.dropped() == 1);
  CHECK(Call(queue).document["metadata"]["name"] == "gpu-1.b");
}

TEST_CASE("a server that is busy is given the time that it asks for") {
  EventQueue queue = NewQueue();
  queue.Post({TestEvent("gpu-1.a")});
  Call(queue);
  ApiAnswer busy = Failure(429);
  busy.retry_after = absl::Seconds(90);
  queue.OnAnswer(busy, kNow);
  CHECK(queue.due() >= kNow + absl::Seconds(90));
}

TEST_CASE("a full queue drops the oldest and counts it; what waits under a name is told once") {
  EventQueue queue = NewQueue();
  for (size_t i = 0; i < EventQueue::kCapacity + 10; ++i) {
    queue.Post({TestEvent(absl::StrFormat("gpu-1.%d", i))});
  }
  CHECK(queue.waiting() == EventQueue::kCapacity);
  CHECK(queue.dropped() == 10);
  queue.Post({TestEvent("gpu-1.20", 4)});
  CHECK(queue.waiting() == EventQueue::kCapacity);
  CHECK(Call(queue).document["metadata"]["name"] == "gpu-1.10");
}

TEST_CASE("an event that no API server would take is not sent, and is told") {
  EventQueue queue = NewQueue();
  ClusterEvent strange = PodEvent();
  strange.pod->name = "../../../nodes/gpu-1";
  ClusterEvent silent = TestEvent("gpu-1.a");
  silent.action.clear();
  queue.Post({TestEvent("a/b"), TestEvent("gpu-1.b", 0), strange, silent});
  CHECK_FALSE(queue.Next(kNow));
  CHECK(queue.dropped() == 4);
  CHECK(queue.TakeLost().size() == 4);
}

TEST_CASE("texts are cut to what the API server takes") {
  EventQueue queue = NewQueue();
  ClusterEvent event = TestEvent("gpu-1.a");
  event.note = std::string(1023, 'x') + "\xc3\xa4";
  event.reason = event.action = std::string(300, 'R');
  queue.Post({event});
  const ApiJson document = Call(queue).document;
  CHECK(document["note"] == std::string(1023, 'x'));
  CHECK(document["reason"].get<std::string>().size() == 128);
  CHECK(document["action"].get<std::string>().size() == 128);
}

TEST_CASE("of a thousand names each is remembered, and not many more") {
  EventQueue queue = NewQueue();
  for (int i = 0; i < 1100; ++i) PostOne(queue, absl::StrFormat("gpu-1.%d", i));
  queue.Post({TestEvent("gpu-1.1099", 2), TestEvent("gpu-1.0", 2)});
  CHECK(Call(queue).kind == Kind::kSeries);
  queue.OnAnswer(Success("{}"), kNow);
  CHECK(Call(queue).kind == Kind::kCreate);
}

}  // namespace vfio_agent
