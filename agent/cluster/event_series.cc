#include "agent/cluster/event_series.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr double kBurst = 25;
constexpr absl::Duration kEach = absl::Minutes(5);
constexpr absl::Duration kFirstStep = absl::Seconds(10);
constexpr absl::Duration kLongestStep = absl::Minutes(30);
constexpr absl::Duration kOver = absl::Minutes(45);
// Some kilobytes each.
constexpr size_t kMostSeries = 256;
// A name of Kubernetes; what follows the object's has a dot and sixteen digits.
constexpr size_t kLongestObject = 253 - 17;

std::string KeyOf(const NodeEvent& event, const std::string& object) {
  std::string key = object;
  for (const std::string* part : {&event.reason, &event.type, &event.action, &event.subject}) {
    key += '\0' + *part;
  }
  return key;
}

void Fill(double& tokens, absl::Time& counted, absl::Time now) {
  tokens = std::min(kBurst, tokens + absl::FDivDuration(now - counted, kEach));
  counted = now;
}

}  // namespace

// What is over goes first, then what has been told and is the quietest.
bool EventSeries::MakeRoom(absl::Time now) {
  std::erase_if(series_, [now](const auto& entry) {
    const Series& series = entry.second;
    return series.told == series.event.count && now - series.happened >= kOver;
  });
  if (series_.size() < kMostSeries) return true;
  auto quietest = series_.end();
  for (auto entry = series_.begin(); entry != series_.end(); ++entry) {
    if (entry->second.told == 0) continue;
    if (quietest == series_.end() || entry->second.happened < quietest->second.happened) {
      quietest = entry;
    }
  }
  if (quietest == series_.end()) return false;
  series_.erase(quietest);
  return true;
}

// Unique among all that this node ever posts: the wall clock tells one start from another.
std::string EventSeries::NameOf(const std::string& key, const std::string& object,
                                absl::Time first) {
  const size_t hash =
      std::hash<std::string>()(absl::StrFormat("%s %d %d", key, absl::ToUnixNanos(first), begun_));
  std::string name = object.substr(0, kLongestObject);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return absl::StrFormat("%s.%016x", name, hash);
}

void EventSeries::Add(const NodeEvent& event, const std::optional<PodRef>& pod, Clocks now) {
  const std::string object = pod ? pod->pod_namespace + "/" + pod->name : node_;
  const std::string key = KeyOf(event, object);
  auto found = series_.find(key);
  if (found != series_.end() && now.steady - found->second.happened >= kOver) {
    series_.erase(found);
    found = series_.end();
  }
  if (found == series_.end()) {
    if (!MakeRoom(now.steady)) {
      ++dropped_;
      return;
    }
    ++begun_;
    found = series_.emplace(key, Series{.object = object, .place = begun_}).first;
    found->second.event = {.reason = event.reason,
                           .type = event.type,
                           .action = event.action,
                           .pod = pod,
                           .count = 0,
                           .first = now.wall,
                           .name = NameOf(key, pod ? pod->name : node_, now.wall)};
  }
  Series& series = found->second;
  series.event.note = event.note;
  series.event.last = std::max(now.wall, series.event.first);
  ++series.event.count;
  series.happened = now.steady;
}

EventSeries::Bucket& EventSeries::BucketOf(const std::string& object, absl::Time now) {
  for (auto& entry : buckets_) Fill(entry.second.tokens, entry.second.counted, now);
  std::erase_if(buckets_, [&](const auto& entry) { return entry.second.tokens >= kBurst; });
  return buckets_.try_emplace(object, Bucket{.tokens = kBurst, .counted = now}).first->second;
}

bool EventSeries::TakeToken(const std::string& object, absl::Time now) {
  Bucket& bucket = BucketOf(object, now);
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

// A little later: where the division rounds down there would be no token yet.
absl::Time EventSeries::TokenAt(const std::string& object) const {
  const auto found = buckets_.find(object);
  if (found == buckets_.end() || found->second.tokens >= 1) return absl::InfinitePast();
  return found->second.counted + (1 - found->second.tokens) * kEach + absl::Milliseconds(1);
}

std::vector<ClusterEvent> EventSeries::Due(Clocks now) {
  std::vector<Series*> turn;
  for (auto& entry : series_) {
    Series& series = entry.second;
    if (series.told < series.event.count && series.next <= now.steady) turn.push_back(&series);
  }
  // Of those that wait for a token what is wrong goes before what is well.
  std::ranges::sort(turn, {}, [](const Series* series) {
    return std::pair(series->event.type != "Warning", series->place);
  });
  std::vector<ClusterEvent> due;
  for (Series* const series : turn) {
    if (series->told == 0 && !TakeToken(series->object, now.steady)) continue;
    series->wait = series->told == 0 ? kFirstStep : std::min(series->wait * 2, kLongestStep);
    series->next = now.steady + series->wait;
    series->told = series->event.count;
    due.push_back(series->event);
  }
  return due;
}

absl::Time EventSeries::due() const {
  absl::Time due = absl::InfiniteFuture();
  for (const auto& entry : series_) {
    const Series& series = entry.second;
    if (series.told == series.event.count) continue;
    due = std::min(due, series.told == 0 ? TokenAt(series.object) : series.next);
  }
  return due;
}

}  // namespace vfio_agent
