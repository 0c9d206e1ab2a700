// EventQueue: the events that are to be posted, and what to ask for to get there. Pure, as
// NodeWriter is.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/cluster/api_answer.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/event_document.h"
#include "agent/cluster/retry.h"

namespace vfio_agent {

struct EventCall {
  enum class Kind {
    kFindPod,  // GET: its uid
    kCreate,   // POST
    kSeries,   // a merge patch
  };
  Kind kind = Kind::kCreate;
  std::string path;
  ApiJson document;
};

class EventQueue {
 public:
  static constexpr size_t kCapacity = 256;

  EventQueue(Reporter reporter, Retry::Limits limits)
      : reporter_(std::move(reporter)), retry_(limits) {}

  // In order; but what the server does not take now goes behind the others.
  void Post(std::vector<ClusterEvent> events);
  void NodeIs(const std::string& uid) { reporter_.node_uid = uid; }

  // The request to make now. One at a time: OnAnswer follows.
  std::optional<EventCall> Next(absl::Time now);
  void OnAnswer(const ApiAnswer& answer, absl::Time now);
  // When to call Next() again; infinite while an answer is awaited, or nothing waits.
  absl::Time due() const;
  bool busy() const { return underway_; }

  // Also what is on its way.
  size_t waiting() const { return waiting_.size() + (current_ ? 1 : 0); }
  uint64_t posted() const { return posted_; }
  uint64_t dropped() const { return dropped_; }
  // Why the last event was not posted, until the server takes one, or finds fault with one alone.
  const absl::Status& status() const { return status_; }
  // Why events were given up since the last call.
  std::vector<absl::Status> TakeLost() { return std::exchange(lost_, {}); }

 private:
  struct Waiting {
    ClusterEvent event;
    int tries = 0;  // that failed for a reason that may be the event's own
  };
  struct Current {
    ClusterEvent event;
    int tries = 0;
    EventCall::Kind next = EventCall::Kind::kCreate;
    int detours = 0;  // from create to series or back
  };
  void Lose(const std::string& name, const absl::Status& why);
  void Drop(const absl::Status& why);
  void GiveUp(const absl::Status& why);
  void Done();
  void Remember(const std::string& name);
  void Detour(EventCall::Kind next, const ApiAnswer& answer);
  void OnPod(const ApiAnswer& answer, absl::Time now);
  void OnPosted(const ApiAnswer& answer, absl::Time now);
  void TryAgain(const ApiAnswer& answer, absl::Time now);
  std::deque<Waiting>::iterator FindWaiting(const std::string& name);

  Reporter reporter_;
  Retry retry_;
  std::deque<Waiting> waiting_;
  std::optional<Current> current_;
  bool underway_ = false;
  absl::Time retry_at_ = absl::InfinitePast();
  // Names that were posted. What has been forgotten is found to be there when it is created.
  std::set<std::string> known_;
  std::deque<std::string> known_order_;
  uint64_t posted_ = 0;
  uint64_t dropped_ = 0;
  absl::Status status_;
  std::vector<absl::Status> lost_;
};

}  // namespace vfio_agent
