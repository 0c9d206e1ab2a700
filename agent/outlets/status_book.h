// StatusBook: what is told of the running daemon. The loop writes it; everybody may read.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "agent/daemon/counts.h"
#include "agent/dra/claim_desk.h"
#include "agent/session.h"
#include "agent/work/jobs.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/kubelet/plugin_event.h"
#include "deviceplugin/offer/offer.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

class StatusBook {
 public:
  StatusBook();

  // For the loop's thread. They note what happened; Turned() makes it known.
  void Pictured(const Picture& picture, const std::vector<Offer>& offers);
  void PictureTaken(std::string trigger, absl::Duration took, std::string error);
  void JobEnded(const JobEvent& event);
  void PluginSaw(const PluginEvent& event);
  void ClaimSaw(const ClaimEvent& event);
  // `rejected`: why not; empty where it was taken.
  void ConfigRead(std::string rejected);
  // Puts in since when.
  void ModeIs(ModeStatus mode);
  void ApiStands(ApiStatus api) { next_.api = std::move(api); }

  // Instead of Turned() while the daemon with process number `holder` has the node.
  void Waits(int holder, absl::Time now);

  // At the end of each turn: publishes a new status where something is new. `limit`: how long the
  // loop may take to its next turn before it counts as hung.
  struct Turn {
    bool kubelet = false;
    bool all_registered = false;
    std::vector<PluginStatus> plugins;
    Underway underway;
    absl::Duration limit;
  };
  void Turned(Turn turn, absl::Time now);

  // For any thread. Never null.
  std::shared_ptr<const AgentStatus> Newest() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the loop counts as hung; empty where it does not.
  std::string Ailment(absl::Time now) const;

 private:
  void MakeKnown() ABSL_LOCKS_EXCLUDED(mutex_);

  Counts counts_;
  AgentStatus next_;
  std::atomic<int64_t> turned_ms_;
  std::atomic<int64_t> limit_ms_;
  mutable Mutex mutex_;
  std::shared_ptr<const AgentStatus> newest_ ABSL_GUARDED_BY(mutex_);
};

// How long the loop may take from turn to turn: it turns once in each resync even where nothing
// happens.
absl::Duration LoopLimit(absl::Duration resync);

}  // namespace vfio_agent
