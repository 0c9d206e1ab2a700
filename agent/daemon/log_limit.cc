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

// What an event is about. An event without any of them has one bucket for its name.
constexpr std::array<std::string_view, 8> kSubject = {"group", "unit", "device", "resource",
                                                      "ids",   "text", "file",   "what"};

std::string KeyOf(const Event& event) {
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
  return std::nullopt;
}

std::vector<Event> LogLimit::Due(absl::Time now) {
  std::vector<Event> told;
  if (holding_ == 0) return told;
  for (auto& entry : buckets_) {
    Bucket& bucket = entry.second;
    if (!bucket.last) continue;
    Fill(bucket, now);
    if (bucket.tokens < 1) continue;
    bucket.tokens -= 1;
    --holding_;
    told.push_back(Told(bucket, now));
  }
  return told;
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
  std::vector<Event> told;
  for (auto& entry : buckets_) {
    if (entry.second.last) told.push_back(Told(entry.second, now));
  }
  holding_ = 0;
  return told;
}

}  // namespace vfio_agent
