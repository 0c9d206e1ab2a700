// EventSeries: makes few Kubernetes Events of much that happens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/node_events.h"

namespace vfio_agent {

// The same about the same thing (reason, type, action, subject, pod) is one Event with a count. It
// is posted at once, then counted on in ever longer steps: 10 s, 20 s, … half an hour. What has not
// happened for three quarters of an hour is over, so that what comes then is a new Event before the
// API server, after an hour, would have forgotten the old one.
//
// New Events have a bucket of tokens for each object, as client-go's: 25 at once, then one each
// five minutes; warnings go first. What waits for a token is counted meanwhile. A value; the times
// come from outside.
class EventSeries {
 public:
  struct Clocks {
    absl::Time steady;  // for pauses
    absl::Time wall;    // for what is told
  };

  explicit EventSeries(std::string node) : node_(std::move(node)) {}

  void Add(const NodeEvent& event, const std::optional<PodRef>& pod, Clocks now);

  // What is to be posted now.
  std::vector<ClusterEvent> Due(Clocks now);
  // When Due() has something; InfiniteFuture: not before the next Add().
  absl::Time due() const;
  // Those that found no room.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Series {
    ClusterEvent event;
    std::string object;  // whose tokens it takes
    int told = 0;        // the count that was posted; 0: not posted yet
    uint64_t place = 0;  // among all that ever began
    absl::Time happened;
    absl::Time next = absl::InfinitePast();
    absl::Duration wait;
  };
  struct Bucket {
    double tokens = 0;
    absl::Time counted;
  };
  bool MakeRoom(absl::Time now);
  Bucket& BucketOf(const std::string& object, absl::Time now);
  bool TakeToken(const std::string& object, absl::Time now);
  absl::Time TokenAt(const std::string& object) const;
  std::string NameOf(const std::string& key, const std::string& object, absl::Time first);

  std::string node_;
  std::map<std::string, Series> series_;
  std::map<std::string, Bucket> buckets_;  // full ones are left out
  uint64_t begun_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace vfio_agent
