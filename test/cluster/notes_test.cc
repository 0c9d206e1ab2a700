// What of an API server's failures is told, and how long is waited after them.
#include "agent/cluster/notes.h"

#include <catch2/catch.hpp>

#include "agent/cluster/retry.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);
constexpr char kDoing[] = "watch this Node";
constexpr char kRule[] = "nodes: list, watch";

}  // namespace

TEST_CASE("what is forbidden is told at once, once, with the rule that lacks") {
  ClusterNotes notes("https://api:6443");
  for (int i = 0; i < 5; ++i) {
    notes.Hear(kDoing, kRule, Failure(403, "no").status, kNow + absl::Minutes(i));
  }
  CHECK(notes.Take() == std::vector<std::string>{
                            "API server https://api:6443: cannot watch this Node: HTTP 403: no: "
                            "the service account's role lacks the rule nodes: list, watch"});
  notes.Hear(kDoing, kRule, absl::OkStatus(), kNow);
  CHECK(notes.Take() ==
        std::vector<std::string>{"API server https://api:6443: watch this Node: it works again"});
  notes.Hear(kDoing, kRule, Failure(403, "no").status, kNow);
  CHECK(notes.Take().size() == 1);
}

TEST_CASE("a server that is away for some seconds is not told of, one that stays away is") {
  ClusterNotes notes("https://api:6443");
  notes.Hear(kDoing, kRule, NoAnswer().status, kNow);
  notes.Hear(kDoing, kRule, NoAnswer().status, kNow + absl::Seconds(9));
  notes.Hear(kDoing, kRule, absl::OkStatus(), kNow + absl::Seconds(10));
  CHECK(notes.Take().empty());
  notes.Hear(kDoing, kRule, NoAnswer().status, kNow + absl::Minutes(1));
  notes.Hear(kDoing, kRule, Failure(503).status, kNow + absl::Minutes(2));
  notes.Hear(kDoing, kRule, Failure(500).status, kNow + absl::Minutes(3));
  CHECK(notes.Take().size() == 1);
}

TEST_CASE("another kind of failure of the same thing is told too, but they cannot take turns") {
  ClusterNotes notes("https://api:6443");
  for (int i = 0; i < 10; ++i) {
    notes.Hear(kDoing, kRule, NoAnswer().status, kNow + absl::Minutes(i));
    notes.Hear(kDoing, kRule, absl::DeadlineExceededError("late"), kNow + absl::Minutes(i));
  }
  CHECK(notes.Take().size() == 2);
}

TEST_CASE("that there is no Node is told once, and that there is one only after that") {
  ClusterNotes notes("https://api:6443");
  notes.NodeIs("gpu-7", true);
  CHECK(notes.Take().empty());
  notes.NodeIs("gpu-7", false);
  notes.NodeIs("gpu-7", false);
  CHECK(notes.Take().size() == 1);
  notes.NodeIs("gpu-7", true);
  CHECK(notes.Take() ==
        std::vector<std::string>{"API server https://api:6443: there is a Node gpu-7 now"});
}

TEST_CASE("lost events are told once for each kind of reason") {
  ClusterNotes notes("https://api:6443");
  for (int i = 0; i < 5; ++i) notes.Lost(Failure(422, "note: too long").status);
  CHECK(notes.Take().size() == 1);
  notes.Lost(Failure(404).status);
  CHECK(notes.Take().size() == 1);
}

TEST_CASE("pauses double up to the longest, are spread, and begin anew after a success") {
  const absl::Duration first = absl::Seconds(1);
  const absl::Duration longest = absl::Minutes(1);
  Retry retry({.first = first, .longest = longest, .seed = 11});
  Retry other({.first = first, .longest = longest, .seed = 12});
  bool spread = false;
  for (int i = 0; i < 100; ++i) {
    const absl::Duration most = std::min(longest, first * (1LL << std::min(i, 30)));
    const absl::Duration pause = retry.After(NoAnswer());
    CHECK(pause >= most / 2);
    CHECK(pause <= most);
    spread = spread || pause != other.After(NoAnswer());
  }
  CHECK(spread);
  retry.Succeeded();
  CHECK(retry.After(NoAnswer()) <= first);
}

}  // namespace vfio_agent
