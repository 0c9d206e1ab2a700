#include "agent/daemon/throttle.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kResync = absl::Seconds(60);

// 10,000 events within a second, and a loop that takes a picture whenever one is due, `took` long.
// How many it takes until the last event has been looked at.
int PicturesInStorm(absl::Duration took, absl::Time& last_begun) {
  constexpr int kEvents = 10'000;
  Throttle throttle;
  absl::Time now = kStart;
  int pictures = 0, event = 0;
  while (event < kEvents || throttle.asked()) {
    for (; event < kEvents && kStart + event * absl::Microseconds(100) <= now; ++event) {
      throttle.Ask();
    }
    if (now < throttle.Next(kResync)) {
      now += absl::Microseconds(100);
      continue;
    }
    throttle.Begin(now);
    last_begun = now;
    now += took;
    throttle.End(now);
    ++pictures;
  }
  return pictures;
}

TEST_CASE("a storm of 10,000 events in a second costs 21 pictures at most", "[agent]") {
  absl::Time last_begun;
  const int pictures = PicturesInStorm(absl::Milliseconds(1), last_begun);
  CHECK(pictures <= 21);
  CHECK(pictures >= 15);  // nor does it go unseen until its end
  CHECK(last_begun >= kStart + absl::Seconds(1) - absl::Milliseconds(1));  // and its last is seen
  CHECK(last_begun <= kStart + absl::Milliseconds(1100));
}

TEST_CASE("where a picture takes long, a storm costs half a processor at most", "[agent]") {
  absl::Time last_begun;
  CHECK(PicturesInStorm(absl::Milliseconds(200), last_begun) <= 4);
  CHECK(last_begun >= kStart + absl::Seconds(1) - absl::Milliseconds(1));
}

TEST_CASE("the first picture is due at once, the next after the resync time", "[agent]") {
  Throttle throttle;
  CHECK(throttle.Next(kResync) <= kStart);
  throttle.Begin(kStart);
  throttle.End(kStart);
  CHECK_FALSE(throttle.asked());
  CHECK(throttle.Next(kResync) == kStart + kResync);
}

TEST_CASE("one event has its picture within 100 ms, also one that comes during a picture",
          "[agent]") {
  Throttle throttle;
  throttle.Begin(kStart);
  throttle.Ask();
  throttle.End(kStart + absl::Milliseconds(10));
  CHECK(throttle.Next(kResync) <= kStart + absl::Milliseconds(100));
}

TEST_CASE("a resync time shorter than a breath counts", "[agent]") {
  Throttle throttle;
  throttle.Begin(kStart);
  throttle.End(kStart);
  throttle.Ask();
  CHECK(throttle.Next(absl::Milliseconds(20)) == kStart + absl::Milliseconds(20));
}

TEST_CASE("after a picture that could not be taken the next one waits a second", "[agent]") {
  Throttle throttle;
  throttle.Begin(kStart);
  throttle.End(kStart, false);
  throttle.Ask();
  CHECK(throttle.Next(absl::Minutes(1)) == kStart + absl::Seconds(1));
  throttle.Begin(kStart + absl::Seconds(1));
  throttle.End(kStart + absl::Seconds(1));
  throttle.Ask();
  CHECK(throttle.Next(absl::Minutes(1)) == kStart + absl::Seconds(1) + absl::Milliseconds(50));
}

}  // namespace
}  // namespace vfio_agent
