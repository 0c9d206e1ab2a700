// Agent: the daemon. Reads, plans, binds and publishes, on one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/jobs.h"
#include "agent/loop.h"
#include "agent/origins.h"
#include "agent/session.h"
#include "agent/signals.h"
#include "agent/transitions.h"
#include "deviceplugin/plugins.h"
#include "sysfs/uevents.h"

namespace vfio_agent {

class Agent {
 public:
  explicit Agent(Session& session);

  // Until SIGTERM or SIGINT; returns the exit code. Devices stay bound, whatever happens.
  int Run();

 private:
  // What is remembered of one group between reconciles.
  struct GroupState {
    int failures = 0;  // in a row
    absl::Time next_try = absl::InfinitePast();
    bool waits_for_other = false;  // another process is at work on the group
  };

  absl::Status Open();
  void OnSignal();
  void Reload();
  void Turn();
  absl::Time Deadline() const;
  absl::Time NextRetry() const;

  void Reconcile(absl::Time now);
  void ForgetFinishedGroups();
  bool HasWork() const;  // something is to be bound
  void StartJobs(absl::Time now);
  void StartBind(const GroupPlan& group, GroupState& state, absl::Time now);
  void OnJobEvent(const JobEvent& event, absl::Time now);
  void OnBindFailed(const JobEvent& event, GroupState& state, absl::Time now);
  void FinishJobs();
  void StepPlugins(absl::Time now);

  Session& session_;
  Loop loop_;
  Signals signals_;
  std::optional<Uevents> uevents_;
  Jobs jobs_;
  std::unique_ptr<Plugins> plugins_;
  OriginStore origins_;
  Transitions transitions_;
  std::optional<Picture> picture_;  // kept only while there is work that needs it
  std::vector<Offer> offers_;
  std::map<int, GroupState> groups_;
  bool changed_ = true;  // something asks for a new picture
  absl::Time last_reconcile_ = absl::InfinitePast();
  std::string last_read_error_;
  int exit_code_ = 0;
};

}  // namespace vfio_agent
