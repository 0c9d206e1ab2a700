// The part of Agent that takes the node from one mode to another.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"
#include "agent/mode/mode_return.h"
#include "agent/mode/mode_view.h"
#include "agent/work/work.h"
#include "iommu/plan/job_key.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// How soon what could not be written is tried again.
constexpr absl::Duration kKeepModeAgain = absl::Seconds(10);
constexpr char kYoungKubelet[] =
    "the kubelet, which is away or has just started and may not list all of its pods yet";

bool HasJob(const std::vector<Job>& work, const GroupRelease& release) {
  return std::ranges::any_of(work, [&release](const Job& job) {
    return job.group == release.group || std::ranges::count(release.vf_groups, job.group) > 0;
  });
}

// What goes back is to leave the slices before.
void AddSliced(const Surplus& surplus, const SlicedUnits& sliced, ModeView& view) {
  for (const PciAddress& address : surplus.devices) {
    if (sliced.MayHave(address.ToString())) view.sliced.push_back(address.ToString());
  }
  for (const std::string& uuid : surplus.mdevs) {
    if (sliced.MayHave(uuid)) view.sliced.push_back(uuid);
  }
}

}  // namespace

void Agent::OpenMode() {
  if (const absl::Status status = mode_.Open(); !status.ok()) {
    Say(Note("which mode was in force last is not known: " + Message(status)));
  }
  session_.UseMode(mode_.memory().mode);
}

void Agent::SetLabels(const NodeLabels& labels) {
  if (mode_.SetLabels(labels, MonotonicNow())) Ask("mode");
}

// What is to be given back and can be, as jobs behind `work`; the rest is in `view`.
void Agent::AddReturns(const Wish& wish, Picture& picture, ModeView& view, std::vector<Job>& work) {
  const Surplus surplus = SurplusOf(mode_.Use(mode_.memory().mode), picture);
  view.to_release = surplus.groups.size();
  if (surplus.groups.empty()) return;
  if (wish.kubelet_young) {
    view.holders.emplace_back(kYoungKubelet);
    return;
  }
  AddSliced(surplus, dra_.sliced(), view);
  if (!view.sliced.empty()) return;
  for (const GroupRelease& release : PlanModeReturn(surplus, session_, picture)) {
    if (release.refusals.empty()) {
      if (!HasJob(work, release)) work.push_back(MakeReleaseJob(release, picture.custody.records));
      continue;
    }
    for (const Refusal& refusal : release.refusals) {
      if (refusal.code == Code::kHeld) view.holders.push_back("the end of a use: " + refusal.text);
      if (refusal.code != Code::kHeld) view.stuck.push_back(refusal.text);
    }
  }
}

// What there is to do in the mode that is in force.
std::vector<Job> Agent::WorkOfMode(const Wish& wish, Picture& picture, ModeView& view) {
  std::vector<Job> work = PlanWork(picture, session_.OpenJournal().boot_id());
  // A vGPU that it does not list yet may be a pod's.
  if (wish.kubelet_young) std::erase_if(work, [](const Job& job) { return TakesVgpuAway(job); });
  view.to_bind = picture.custody.underway.at_work.size();
  for (const Job& job : work) view.to_bind += job.kind == JobKind::kBind ? 1 : 0;
  if (mode_.memory().mode != Mode::kContainer) view.holders = WhoKeeps(picture.plan);
  view.stuck = WhatIsStuck(picture.custody.underway);
  AddReturns(wish, picture, view, work);
  for (const Job& job : work) {
    if (!retries_.IsFailing(job.group)) continue;
    view.stuck.push_back(absl::StrFormat("the last %s of %s failed, and is tried again",
                                         job.kind == JobKind::kBind ? "bind" : "release",
                                         SpellJobKey(job.group)));
  }
  return work;
}

// Before the picture is made known: what another mode has no use for is withheld with it.
void Agent::DecideMode(const Wish& wish, Picture& picture, absl::Time now) {
  const ModeWish::Answer answer = mode_.Ask(now);
  if (const auto invalid = mode_.TakeInvalid()) {
    Say(ModeInvalid(mode_.label(), *invalid, session_.config().mode.mode));
  }
  const bool seen = picture.custody.tenancy->opened >= now;
  if (seen && !wish.kubelet_young) tenants_seen_ = now;
  if (seen || wish.tenants == Wish::Tenants::kAll) cut_short_ = !seen;
  ModeView view{.now = now, .looked = tenants_seen_, .cut_short = cut_short_};
  SeeWhatGoes(picture, mode_.Use(answer.mode.value_or(mode_.heading())), dra_.sliced(), view);
  if (answer.mode) work_ = WorkOfMode(wish, picture, view);
  const std::optional<Mode> withheld = mode_.decision().withhold;
  const bool news = mode_.Step(answer, std::move(view));
  const ModeDecision& decision = mode_.decision();
  if (!decision.write) work_.clear();
  if (const auto& next = decision.withhold) Withhold(*next, mode_.Use(*next), picture.plan);
  if (decision.withhold && decision.withhold != withheld) tenants_.AskAll(now);
  if (news) Say(ModeSeen(mode_.Status()));
  book_.ModeIs(mode_.Status());
  if (mode_.memory().mode == session_.config().in_force) return;
  session_.UseMode(mode_.memory().mode);
  Ask("mode");
}

// Before anything is begun that follows from it, and without it nothing is.
void Agent::KeepMode(absl::Time now) {
  if (keep_mode_again_ <= now || keep_mode_again_ == absl::InfiniteFuture()) {
    const absl::Status status = mode_.Keep();
    keep_mode_again_ = status.ok() ? absl::InfiniteFuture() : now + kKeepModeAgain;
    if (status.ok()) return;
    Say(Note(Message(status) + ": " + kStateRemedy));
  }
  work_.clear();
}

}  // namespace vfio_agent
