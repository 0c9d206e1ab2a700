// LogLimit: keeps one thing that happens over and over from filling the log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/daemon/event.h"

namespace vfio_agent {

// A bucket of tokens for each name of an event and what it is about (group, unit, resource and so
// on), where all words about one state, such as unit_healthy and unit_unhealthy, count as one name:
// thirty lines at once, then one each two seconds. Of those that are held back the last one is told
// as soon as there is a token, with how many before it were not: the log always ends with the state
// that things are in. Nobody's lines are held back for another's sake. A value; the time comes from
// outside.
class LogLimit {
 public:
  // `event` where it may be written now.
  std::optional<Event> Admit(Event event, absl::Time now);

  // Those held back whose turn has come, in the order in which they happened, with `suppressed` and
  // `late`.
  std::vector<Event> Due(absl::Time now);
  // When Due() has something; InfiniteFuture while nothing is held back.
  absl::Time due() const;
  // All that is held back: there is no later.
  std::vector<Event> Rest(absl::Time now);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Time counted;
    std::optional<Event> last;  // held back
    absl::Time last_at;
    uint64_t place = 0;  // of it, among all that were ever held back
    int suppressed = 0;  // before it
  };
  static void Fill(Bucket& bucket, absl::Time now);
  static Event Told(Bucket& bucket, absl::Time now);
  std::vector<Event> TellHeld(const std::function<bool(Bucket&)>& whose, absl::Time now);
  void Sweep(absl::Time now);

  std::map<std::string, Bucket> buckets_;
  int holding_ = 0;    // buckets with something held back
  uint64_t held_ = 0;  // so far
};

}  // namespace vfio_agent
