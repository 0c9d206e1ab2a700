#include "agent/daemon/log_limit.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr double kBurst = 30;
constexpr absl::Duration kEach = absl::Seconds(2);
// Some hundred bytes each.
constexpr size_t kMostBuckets = 4096;

// Several events are words about one state of one thing: then the newest of them is the only one
// that is true, and takes the place of what is held back. `subject`: the field that says which
// thing; empty where there is one only.
struct Sides {
  std::string_view family;
  std::string_view subject;
  std::array<std::string_view, 10> names;
};
constexpr std::array<Sides, 9> kSides = {{
    {"job",
     "group",
     {"bind_started", "bind_done", "bind_failed", "bind_stuck", "bind_returned", "release_started",
      "released", "release_failed", "release_stuck", "release_returned"}},
    {"group",
     "group",
     {"group_ready", "group_to_bind", "group_left", "group_refused", "group_gone", "vfs_ready",
      "vfs_to_make"}},
    {"unit", "unit", {"unit_healthy", "unit_unhealthy"}},
    {"tenant", "unit", {"unit_free", "unit_held"}},
    {"registration", "resource", {"registered", "register_failed"}},
    {"list", "resource", {"list_opened", "list_closed"}},
    {"contention", "resource", {"register_contended", "contention_over"}},
    {"config", "", {"config_reloaded", "config_rejected"}},
    {"pods", "", {"pods_known", "pods_unknown"}},
}};

// What any other event is about. One without any of them has one bucket for its name.
constexpr std::array<std::string_view, 8> kSubject = {"group", "unit", "device", "resource",
                                                      "ids",   "text", "file",   "what"};

const std::string* FieldOf(const Event& event, std::string_view key) {
  for (const auto& [name, value] : event.fields) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string KeyOf(const Event& event) {
  const auto* const sides = std::ranges::find_if(
      kSides, [&](const Sides& row) { return std::ranges::count(row.names, event.name) > 0; });
  if (sides != kSides.end()) {
    const std::string* subject = FieldOf(event, sides->subject);
    // Devices that no IOMMU has put into a group.
    if (subject == nullptr) subject = FieldOf(event, "members");
    return absl::StrFormat("state %s %s", sides->family, subject != nullptr ? *subject : "");
  }
  std::string key = event.name;
  for (const auto& [name, value] : event.fields) {
    if (std::ranges::count(kSubject, name) > 0) key += '\0' + value;
  }
  return key;
}

}  // namespace

void LogLimit::Fill(Bucket& bucket, absl::Time now) {
  bucket.tokens = std::min(kBurst, bucket.tokens + absl::FDivDuration(now - bucket.counted, kEach));
  bucket.counted = now;
}

Event LogLimit::Told(Bucket& bucket, absl::Time now) {
  Event event = *std::exchange(bucket.last, std::nullopt);
  if (bucket.suppressed > 0) event.With("suppressed", absl::StrFormat("%d", bucket.suppressed));
  const absl::Duration late = absl::Trunc(now - bucket.last_at, absl::Milliseconds(100));
  if (late > absl::ZeroDuration()) event.With("late", absl::FormatDuration(late));
  bucket.suppressed = 0;
  return event;
}

// A full bucket is as good as none.
void LogLimit::Sweep(absl::Time now) {
  if (buckets_.size() < kMostBuckets) return;
  for (auto& entry : buckets_) Fill(entry.second, now);
  std::erase_if(buckets_, [](const auto& entry) {
    return entry.second.tokens >= kBurst && !entry.second.last;
  });
}

std::optional<Event> LogLimit::Admit(Event event, absl::Time now) {
  const std::string key = KeyOf(event);
  if (!buckets_.contains(key)) {
    Sweep(now);
    if (buckets_.size() >= kMostBuckets) return event;
    buckets_[key] = {.tokens = kBurst, .counted = now};
  }
  Bucket& bucket = buckets_[key];
  Fill(bucket, now);
  if (!bucket.last && bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return event;
  }
  if (bucket.last) ++bucket.suppressed;
  if (!bucket.last) ++holding_;
  bucket.last = std::move(event);
  bucket.last_at = now;
  bucket.place = ++held_;
  return std::nullopt;
}

std::vector<Event> LogLimit::TellHeld(const std::function<bool(Bucket&)>& whose, absl::Time now) {
  std::vector<Bucket*> turn;
  for (auto& entry : buckets_) {
    if (entry.second.last && whose(entry.second)) turn.push_back(&entry.second);
  }
  std::ranges::sort(turn, {}, &Bucket::place);
  std::vector<Event> told;
  for (Bucket* const bucket : turn) told.push_back(Told(*bucket, now));
  holding_ -= static_cast<int>(told.size());
  return told;
}

std::vector<Event> LogLimit::Due(absl::Time now) {
  if (holding_ == 0) return {};
  const auto whose = [now](Bucket& bucket) {
    Fill(bucket, now);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  };
  return TellHeld(whose, now);
}

absl::Time LogLimit::due() const {
  absl::Time due = absl::InfiniteFuture();
  if (holding_ == 0) return due;
  for (const auto& entry : buckets_) {
    const Bucket& bucket = entry.second;
    // A little later: where the division rounds down there would be no token yet.
    const absl::Time full = bucket.counted + (1 - bucket.tokens) * kEach + absl::Milliseconds(1);
    if (bucket.last) due = std::min(due, full);
  }
  return due;
}

std::vector<Event> LogLimit::Rest(absl::Time now) {
  return TellHeld([](const Bucket&) { return true; }, now);
}

}  // namespace vfio_agent
