// The part of Agent that keeps track of who has what.
#include <algorithm>

#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// How soon what could not be written is tried again.
constexpr absl::Duration kKeepAgain = absl::Seconds(10);

}  // namespace

// All that can be looked at when it is time for that. The first picture waits for no walk over the
// processes: the kubelet waits for it.
Wish Agent::MakeWish(absl::Time now) const {
  Wish wish{.underway = jobs_.Underway(),
            .given =
                [this] {
                  const uint64_t turn = ledger_->turn();  // what comes after it may be known too
                  return Given{.turn = turn,
                               .grants = ledger_->Grants(),
                               .parts = PartsOf(ledger_->answers())};
                },
            .tenants = Wish::Tenants::kLast,
            .kubelet_young = now < kubelet_grown_ || (kubelet_met_ && !plugins_->kubelet_up())};
  if (tenants_.due() <= now) {
    wish.tenants = tenants_.WantsProcesses(now) ? Wish::Tenants::kAll : Wish::Tenants::kPods;
  }
  return wish;
}

void Agent::LookedAtTenants(const Wish& wish, const Picture& picture, absl::Time now) {
  TenantWatch::Open open = WhatIsOpen(picture, offers_);
  if (wish.kubelet_young && open == TenantWatch::Open::kNothing) open = TenantWatch::Open::kPods;
  const Tenancy& tenancy = *picture.custody.tenancy;
  if (mode_.waits() || (cut_short_ && open != TenantWatch::Open::kNothing)) {
    open = TenantWatch::Open::kProcesses;
  }
  tenants_.Looked(now, tenancy.opened >= now, open, session_.settings().resync);
  CompareWithKubelet(picture, now);
  // An old list tells of pods that may have ended.
  const PodClaims old{.known = false};
  cluster_.SawPods(tenancy.silent.empty() ? tenancy.claims : old,
                   session_.settings().device_plugin_dir);
}

// A stream that is open does not say that the kubelet still takes our word for it.
void Agent::CompareWithKubelet(const Picture& picture, absl::Time now) {
  const Tenancy& tenancy = *picture.custody.tenancy;
  if (!tenancy.silent.empty() || !tenancy.claims.allocatable) return;
  if (!plugins_->Compare(*tenancy.claims.allocatable, now)) tenants_.Ask(now);
}

void Agent::KeepAnswers(absl::Time now) {
  const uint64_t version = ledger_->version();
  if (version == answers_kept_ || now < keep_again_) return;
  const absl::Status status = answers_file_.Write(ledger_->answers());
  if (status.ok()) {
    answers_kept_ = version;
    return;
  }
  keep_again_ = now + kKeepAgain;
  Say(Note(Message(status) + ": " + kStateRemedy));
}

// The siblings of what was given are to be withheld at once; who has got it is asked a little
// later.
void Agent::OnAllocated(const std::vector<std::string>& ids, absl::Time now) {
  tenants_.Ask(now);
  if (HaveSiblings(offers_, ids)) Ask("allocate");
}

}  // namespace vfio_agent
