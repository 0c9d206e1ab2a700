#include "agent/outlets/status_book.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/outlets/status.h"
#include "agent/version.h"
#include "sysfs/clock.h"

namespace vfio_agent {
namespace {

// Times are told to the millisecond, and a value is to survive the way over the socket.
absl::Time WallClock() { return absl::FromUnixMillis(absl::ToUnixMillis(absl::Now())); }

int64_t Millis(absl::Time time) { return absl::ToUnixMillis(time); }

}  // namespace

absl::Duration LoopLimit(absl::Duration resync) { return std::max(resync * 2, absl::Seconds(30)); }

StatusBook::StatusBook()
    : turned_ms_(Millis(MonotonicNow())),
      limit_ms_(absl::ToInt64Milliseconds(LoopLimit(absl::ZeroDuration()))) {
  next_.version = AgentVersion();
  next_.pid = ::getpid();
  next_.started = WallClock();
  const MutexLock lock(mutex_);
  newest_ = std::make_shared<const AgentStatus>(next_);
}

void StatusBook::Pictured(const Picture& picture, const std::vector<Offer>& offers) {
  auto node = std::make_shared<const NodeStatus>(MakeNodeStatus(picture, offers));
  for (const std::string& code : FindDrift(*next_.node, *node)) {
    counts_.Add(kDrift, {{"kind", code}});
  }
  next_.node = std::move(node);
}

void StatusBook::PictureTaken(std::string trigger, absl::Duration took, std::string error) {
  counts_.Add(kRescans, {{"trigger", trigger}});
  next_.picture.error = std::move(error);
  if (!next_.picture.error.empty()) return;
  next_.picture.at = WallClock();
  next_.picture.took = took;
  next_.picture.trigger = std::move(trigger);
}

void StatusBook::JobEnded(const JobEvent& event) {
  const bool bind = event.job.kind == JobKind::kBind && !event.job.actions.empty();
  if (!bind || event.kind != JobEvent::Kind::kFinished) return;
  const bool ok = event.status.ok();
  counts_.Add(kBinds, {{"result", ok ? "ok" : "failed"},
                       {"code", ok ? "" : std::string(CodeName(event.code))}});
  counts_.AddTime(kBindDuration, event.took);
}

void StatusBook::PluginSaw(const PluginEvent& event) {
  const auto add = [&](const char* name, const char* result) {
    counts_.Add(name, {{"resource", event.resource}, {"result", result}});
  };
  switch (event.kind) {
    case PluginEvent::Kind::kRegistered:
      return add(kRegistrations, "ok");
    case PluginEvent::Kind::kRegisterFailed:
      return add(kRegistrations, "failed");
    case PluginEvent::Kind::kAllocated:
      counts_.AddTime(kAllocateDuration, event.took);
      return add(kAllocations, "ok");
    case PluginEvent::Kind::kAllocateRefused:
      return add(kAllocations, "refused");
    case PluginEvent::Kind::kKubeletRestarted:
      return counts_.Add(kKubeletRestarts);
    default:
      return;
  }
}

void StatusBook::ClaimSaw(const ClaimEvent& event) {
  using Kind = ClaimEvent::Kind;
  const bool prepare = event.kind == Kind::kPrepared || event.kind == Kind::kPrepareFailed;
  const bool ok = event.kind == Kind::kPrepared || event.kind == Kind::kUnprepared;
  counts_.Add(kClaims,
              {{"operation", prepare ? "prepare" : "unprepare"}, {"result", ok ? "ok" : "failed"}});
  counts_.AddTime(prepare ? kPrepareDuration : kUnprepareDuration, event.took);
}

void StatusBook::ConfigRead(std::string rejected) {
  counts_.Add(kConfigReloads, {{"result", rejected.empty() ? "ok" : "rejected"}});
  next_.config_rejected = std::move(rejected);
}

void StatusBook::ModeIs(ModeStatus mode) {
  const ModeStatus& last = next_.mode;
  const bool same =
      mode.mode == last.mode && mode.target == last.target && mode.state == last.state;
  mode.since = same ? last.since : WallClock();
  next_.mode = std::move(mode);
}

void StatusBook::Waits(int holder, absl::Time now) {
  turned_ms_ = Millis(now);
  next_.waits_for = absl::StrFormat("the daemon with process number %d", holder);
  MakeKnown();
}

void StatusBook::Turned(Turn turn, absl::Time now) {
  turned_ms_ = Millis(now);
  next_.waits_for.clear();
  limit_ms_ = absl::ToInt64Milliseconds(turn.limit);
  next_.kubelet = turn.kubelet;
  next_.ready = next_.picture.at != absl::UnixEpoch() && turn.all_registered;
  next_.plugins = std::move(turn.plugins);
  next_.jobs = MakeJobStatus(turn.underway);
  next_.counts = counts_.counts();
  next_.times = counts_.times();
  MakeKnown();
}

void StatusBook::MakeKnown() {
  if (*Newest() == next_) return;
  auto newest = std::make_shared<const AgentStatus>(next_);
  const MutexLock lock(mutex_);
  newest_ = std::move(newest);
}

std::shared_ptr<const AgentStatus> StatusBook::Newest() const {
  const MutexLock lock(mutex_);
  return newest_;
}

std::string StatusBook::Ailment(absl::Time now) const {
  const absl::Duration since = absl::Milliseconds(Millis(now) - turned_ms_);
  const absl::Duration limit = absl::Milliseconds(limit_ms_.load());
  if (since <= limit) return "";
  return absl::StrFormat("the loop has not turned for %s; at most %s is expected",
                         absl::FormatDuration(absl::Trunc(since, absl::Seconds(1))),
                         absl::FormatDuration(limit));
}

}  // namespace vfio_agent
