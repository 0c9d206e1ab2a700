#include "agent/cluster/event_queue.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kKnown = 1024;
constexpr int kDetours = 3;
constexpr size_t kNameShown = 128;
constexpr int kTries = 10;
constexpr int kUnauthorized = 401;
constexpr int kBusy = 429;
constexpr int kUnavailable = 503;
constexpr int kGatewayTimeout = 504;

// What no other try makes better, besides what the pod's namespace no longer takes.
bool IsFinal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsUnimplemented(status) ||
         (absl::IsPermissionDenied(status) &&
          Message(status).find("being terminated") != std::string::npos);
}

// Nobody has looked at the event: another one would have been answered the same.
bool IsOfAll(int code) { return code == 0 || code == kUnauthorized || code == kBusy; }
// Mostly so. Nothing is lost where such a time is long.
bool IsMostlyOfAll(int code) { return code == kUnavailable || code == kGatewayTimeout; }

}  // namespace

std::deque<EventQueue::Waiting>::iterator EventQueue::FindWaiting(const std::string& name) {
  return std::ranges::find_if(
      waiting_, [&name](const Waiting& waiting) { return waiting.event.name == name; });
}

void EventQueue::Post(std::vector<ClusterEvent> events) {
  for (ClusterEvent& event : events) {
    if (const absl::Status status = CheckEvent(event); !status.ok()) {
      Lose(CutText(event.name, kNameShown), status);
      continue;
    }
    if (const auto same = FindWaiting(event.name); same != waiting_.end()) {
      same->event.count = event.count;
      same->event.last = event.last;
      continue;
    }
    waiting_.push_back({.event = std::move(event)});
    for (; waiting_.size() > kCapacity; ++dropped_) waiting_.pop_front();
  }
}

absl::Time EventQueue::due() const {
  return underway_ || waiting() == 0 ? absl::InfiniteFuture() : retry_at_;
}

std::optional<EventCall> EventQueue::Next(absl::Time now) {
  if (due() > now) return std::nullopt;
  if (!current_) {
    Waiting& first = waiting_.front();
    current_ = Current{.event = std::move(first.event), .tries = first.tries};
    waiting_.pop_front();
    const ClusterEvent& event = current_->event;
    if (known_.contains(event.name)) {
      current_->next = EventCall::Kind::kSeries;
    } else if (event.pod && event.pod->uid.empty()) {
      current_->next = EventCall::Kind::kFindPod;
    }
  }
  underway_ = true;
  const ClusterEvent& event = current_->event;
  switch (current_->next) {
    case EventCall::Kind::kFindPod:
      return EventCall{current_->next,
                       absl::StrFormat("/api/v1/namespaces/%s/pods/%s", event.pod->pod_namespace,
                                       event.pod->name),
                       {}};
    case EventCall::Kind::kCreate:
      return EventCall{current_->next, EventsPath(event), EventDocument(event, reporter_)};
    case EventCall::Kind::kSeries:
      break;
  }
  return EventCall{current_->next, EventPath(event), SeriesPatch(event)};
}

void EventQueue::OnAnswer(const ApiAnswer& answer, absl::Time now) {
  underway_ = false;
  if (answer.status.ok()) retry_.Succeeded();
  if (current_->next == EventCall::Kind::kFindPod) return OnPod(answer, now);
  OnPosted(answer, now);
}

// A pod that has gone, or may not be looked at, is known by its name alone.
void EventQueue::OnPod(const ApiAnswer& answer, absl::Time now) {
  const bool told = answer.status.ok() || absl::IsNotFound(answer.status) ||
                    absl::IsPermissionDenied(answer.status);
  if (!told) return TryAgain(answer, now);
  current_->next = EventCall::Kind::kCreate;
  if (!answer.status.ok()) return;
  const absl::StatusOr<ApiJson> pod = ParseApiJson(answer.body);
  if (pod.ok()) current_->event.pod->uid = TextAt(*pod, {"metadata", "uid"});
}

void EventQueue::OnPosted(const ApiAnswer& answer, absl::Time now) {
  const bool series = current_->next == EventCall::Kind::kSeries;
  if (answer.status.ok()) return Done();
  if (!series && absl::IsAlreadyExists(answer.status)) {
    // The answer to an earlier try got lost; or it is of a time that we have forgotten.
    if (current_->event.count == 1) return Done();
    return Detour(EventCall::Kind::kSeries, answer);
  }
  // The API server forgets events after an hour.
  if (series && absl::IsNotFound(answer.status)) return Detour(EventCall::Kind::kCreate, answer);
  if (IsFinal(answer.status)) return GiveUp(answer.status);
  // A quota or an admission policy of the pod's namespace says nothing of other events.
  if (current_->event.pod && absl::IsPermissionDenied(answer.status)) return Drop(answer.status);
  TryAgain(answer, now);
}

void EventQueue::Detour(EventCall::Kind next, const ApiAnswer& answer) {
  if (++current_->detours > kDetours) return GiveUp(answer.status);
  current_->next = next;
}

void EventQueue::TryAgain(const ApiAnswer& answer, absl::Time now) {
  status_ = answer.status;
  retry_at_ = now + retry_.After(answer);
  if (IsOfAll(answer.code)) return;
  if (!IsMostlyOfAll(answer.code) && ++current_->tries >= kTries) return Drop(answer.status);
  Waiting again{.event = std::move(current_->event), .tries = current_->tries};
  current_.reset();
  // Posted again meanwhile: that one has the newer count.
  if (const auto same = FindWaiting(again.event.name); same != waiting_.end()) {
    again.event.count = same->event.count;
    again.event.last = same->event.last;
    waiting_.erase(same);
  }
  waiting_.push_back(std::move(again));
}

void EventQueue::Lose(const std::string& name, const absl::Status& why) {
  lost_.push_back(Annotate(why, absl::StrFormat("the event \"%s\"", Printable(name))));
  ++dropped_;
}

void EventQueue::Drop(const absl::Status& why) {
  Lose(current_->event.name, why);
  current_.reset();
}

// It is the event that the server finds fault with: all is well with posting.
void EventQueue::GiveUp(const absl::Status& why) {
  status_ = absl::OkStatus();
  Drop(why);
}

void EventQueue::Done() {
  status_ = absl::OkStatus();
  ++posted_;
  Remember(current_->event.name);
  current_.reset();
}

void EventQueue::Remember(const std::string& name) {
  if (!known_.insert(name).second) return;
  known_order_.push_back(name);
  if (known_order_.size() <= kKnown) return;
  known_.erase(known_order_.front());
  known_order_.pop_front();
}

}  // namespace vfio_agent
