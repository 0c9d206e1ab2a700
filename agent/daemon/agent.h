// Agent: the daemon. Reads, plans, binds and publishes, on one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/config/config_watch.h"
#include "agent/daemon/answers.h"
#include "agent/daemon/cluster_teller.h"
#include "agent/daemon/daemon_lock.h"
#include "agent/daemon/dra_room.h"
#include "agent/daemon/log_limit.h"
#include "agent/daemon/loop.h"
#include "agent/daemon/outlets.h"
#include "agent/daemon/retries.h"
#include "agent/daemon/signals.h"
#include "agent/daemon/tenant_watch.h"
#include "agent/daemon/throttle.h"
#include "agent/daemon/transitions.h"
#include "agent/mode/mode_keeper.h"
#include "agent/outlets/cdi_files.h"
#include "agent/outlets/nfd_file.h"
#include "agent/outlets/status_book.h"
#include "agent/session.h"
#include "agent/work/jobs.h"
#include "agent/work/use_reader.h"
#include "deviceplugin/kubelet/plugins.h"
#include "sysfs/node_watch.h"
#include "sysfs/uevents.h"

namespace vfio_agent {

class Agent {
 public:
  explicit Agent(Session& session);

  // Waits for an agent that is there already, then works until SIGTERM or SIGINT; returns the exit
  // code. Devices stay bound, whatever happens. The node stays this agent's until the object goes.
  int Run();

  // True once the node was this agent's, and no other's any more.
  bool has_node() const { return has_node_; }

  // What the API server shows of this node, where it has one; on the loop's thread.
  void SetLabels(const NodeLabels& labels);

 private:
  bool TakeNode();
  void ReadConfigAgain();
  absl::Status Open();
  void OnSignal();
  void CheckConfig(absl::Time now);
  void ConfigLost(const std::string& why);
  void Reload(bool asked);
  std::optional<size_t> Foretell(const Session::Candidate& next);
  void Say(Event event);
  void SayNotes();
  void Turn();
  void End();
  void Ask(const char* trigger);
  void Tell();
  void OpenCluster();
  void NoteNoLabel();
  void TellCluster();
  absl::Time Deadline() const;
  absl::Time NextRetry() const;

  void Reconcile(absl::Time now);
  Wish MakeWish(absl::Time now) const;
  void CompareWithKubelet(const Picture& picture, absl::Time now);
  void LookedAtTenants(const Wish& wish, const Picture& picture, absl::Time now);
  void KeepAnswers(absl::Time now);
  void OnAllocated(const std::vector<std::string>& ids, absl::Time now);
  void Publish(const Picture& picture, const std::vector<std::string>& notes);
  std::vector<Offer> OffersBefore(const Picture& picture) const;
  void WriteCdi(const std::vector<Offer>& offers);
  void TellNfd(const std::string& dir, const NfdLabels& labels);
  void OpenMode();
  void DecideMode(const Wish& wish, Picture& picture, absl::Time now);
  std::vector<Job> WorkOfMode(const Wish& wish, Picture& picture, ModeView& view);
  void AddReturns(const Wish& wish, Picture& picture, ModeView& view, std::vector<Job>& work);
  void KeepMode(absl::Time now);
  void LookAgain(const Picture& picture);
  void SetAside(const Picture& picture);
  void StartJobs(absl::Time now);
  bool StartJob(const Job& job, absl::Time now);
  void OnJobEvent(const JobEvent& event, absl::Time now);
  void SetGrace();
  void FinishJobs();
  void StepPlugins(absl::Time now);
  void StepDra(absl::Time now);

  // How soon is looked again at what did not answer; then ever later.
  static constexpr absl::Duration kFirstLook = absl::Seconds(1);

  Session& session_;
  DaemonLock lock_;
  bool has_node_ = false;
  Loop loop_;
  Signals signals_;
  std::optional<Uevents> uevents_;
  NodeWatch nodes_;
  Jobs jobs_;
  UseReader uses_;  // who has the devices of a failed job open
  AnswersFile answers_file_;
  std::unique_ptr<Ledger> ledger_;
  uint64_t answers_kept_ = 0;  // the ledger's version that is on disk
  std::unique_ptr<Plugins> plugins_;
  DraRoom dra_;  // after the plugins, which keep gRPC quiet
  StatusBook book_;
  Outlets outlets_;  // after the plugins, which keep gRPC quiet
  CdiFiles cdi_;
  NfdFile nfd_;
  std::string labels_;  // of the last picture, as NFD is told
  std::optional<NodeLabels>
      node_labels_;        // as last seen, for a label that decides from a reload on
  ClusterTeller cluster_;  // after the loop, which its thread wakes
  Transitions transitions_;
  Retries retries_;
  Throttle pictures_;
  ConfigWatch config_watch_;
  LogLimit lines_;
  const char* trigger_ = "start";  // what asked for the next picture first
  TenantWatch tenants_;
  ModeKeeper mode_;
  absl::Time tenants_seen_ = absl::InfinitePast();  // all of them
  bool cut_short_ = false;                          // the last look at their processes
  absl::Time keep_mode_again_ = absl::InfinitePast();
  // One that comes up lists its pods, not all of them yet, before it takes plugins again.
  bool kubelet_met_ = false;
  absl::Time kubelet_grown_ = absl::InfinitePast();
  absl::Time keep_again_ = absl::InfinitePast();
  std::vector<Job> work_;  // what the last picture wants done
  std::vector<Offer> offers_;
  absl::Time look_again_ = absl::InfiniteFuture();
  absl::Duration look_wait_ = kFirstLook;
  std::map<int, StuckWrite> stuck_before_;  // by group: of agents before this one
  std::string last_read_error_;
  bool looked_ = false;  // there was a picture
  bool learnt_ = false;  // what pods had when the kubelet listed them first
  bool terminated_ = false;
  int exit_code_ = 0;
};

}  // namespace vfio_agent
