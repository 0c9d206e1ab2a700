#include "agent/cluster/cluster_worker.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kNodes[] = "/api/v1/nodes";
// What the role of the service account must allow, for each thing that is done.
constexpr char kWatchRule[] = "nodes: list, watch";
constexpr char kWriteRule[] = "nodes and nodes/status: patch";
constexpr char kPostRule[] = "events of events.k8s.io: create, patch";
// After so many in a row somebody is told that two want different things.
constexpr int kRewritesToTell = 3;

Retry::Limits LimitsOf(const ClusterOptions& options, unsigned salt) {
  return {.first = options.times.first_pause,
          .longest = options.times.longest_pause,
          .seed = static_cast<unsigned>(absl::ToUnixMicros(absl::Now())) + salt};
}

ApiClient::Options ClientOptions(const ClusterOptions& options, const std::string& server) {
  return {.server = server,
          .token_file = options.token_file,
          .ca_file = options.ca_file,
          .user_agent = absl::StrFormat("vfio-agent/%s",
                                        options.version.empty() ? "unknown" : options.version),
          .connect = options.times.connect,
          .answer = options.times.answer};
}

// One Node has this name, or none: such a list has no second page, so none is asked for.
std::string SelectorOf(const std::string& node) {
  return absl::StrFormat("fieldSelector=metadata.name%%3D%s", node);
}

// Up to twice as long, by the node's name: agents that started together do not all come again at
// the same time.
absl::Duration WatchLength(const ClusterOptions& options) {
  constexpr size_t kParts = 1000;
  const size_t part = std::hash<std::string>()(options.node_name) % kParts;
  return options.times.watch * (1.0 + static_cast<double>(part) / kParts);
}

}  // namespace

ClusterWorker::ClusterWorker(const ClusterOptions& options, const std::string& server,
                             Transport& transport)
    : options_(options),
      transport_(transport),
      client_(transport, ClientOptions(options, server)),
      watch_(LimitsOf(options, 1)),
      writer_({.node = options.node_name,
               .limits = LimitsOf(options, 2),
               .own_pause = std::min(options.times.first_pause, absl::Seconds(1)),
               .rewrite_pause = options.times.rewrite_pause,
               .heartbeat = options.times.heartbeat}),
      events_({.node = options.node_name, .instance = options.instance}, LimitsOf(options, 3)),
      notes_(server) {
  status_.server = server;
}

std::string ClusterWorker::NodePath() const {
  return absl::StrFormat("%s/%s", kNodes, options_.node_name);
}

void ClusterWorker::Account(const absl::Status& status, Moment now) {
  if (status.ok()) {
    status_.last_success = now.wall;
  } else {
    status_.last_error = Message(status);
    status_.last_error_at = now.wall;
  }
  notes_.Hear("watch this Node", kWatchRule, watch_.status(), now.steady);
  notes_.Hear("write to this Node", kWriteRule, writer_.status(), now.steady);
  notes_.Hear("post events", kPostRule, events_.status(), now.steady);
  if (writer_.rewrites() >= kRewritesToTell) notes_.Contested();
}

void ClusterWorker::StartWatching(Moment now) {
  if (watch_.due() > now.steady) return;
  watch_.OnSent(now.steady);
  if (watch_.wants() == ObjectWatch::Wants::kList) {
    listing_ = true;
    client_.List(kNodes, SelectorOf(options_.node_name),
                 [this](const ApiAnswer& answer) { OnList(answer); });
    return;
  }
  watching_ = client_.Watch(
      kNodes, SelectorOf(options_.node_name), watch_.version(), WatchLength(options_),
      [this](std::string_view line) { OnLine(line); },
      [this](const ApiAnswer& answer) { OnWatchEnd(answer); });
}

void ClusterWorker::OnList(const ApiAnswer& answer) {
  const Moment now = MomentNow();
  listing_ = false;
  watch_.OnList(answer, now.steady);
  // Who may not look may be allowed to write all the same.
  if (absl::IsPermissionDenied(answer.status)) writer_.Blind();
  TakeNews();
  Account(watch_.status(), now);
}

void ClusterWorker::OnLine(std::string_view line) {
  const Moment now = MomentNow();
  if (!watch_.OnLine(line, now.steady)) client_.Cancel(std::exchange(watching_, 0));
  TakeNews();
  Account(watch_.status(), now);
}

void ClusterWorker::OnWatchEnd(const ApiAnswer& answer) {
  const Moment now = MomentNow();
  watching_ = 0;
  watch_.OnEnd(answer, now.steady);
  Account(watch_.status(), now);
}

void ClusterWorker::TakeNews() {
  for (const WatchNews& news : watch_.TakeNews()) {
    std::optional<ApiNode> node;
    bool ours = news.kind == WatchNews::Kind::kAll;
    for (const ApiJson& object : news.objects) {
      if (TextAt(object, {"metadata", "name"}) != options_.node_name) continue;
      ours = true;
      if (news.kind != WatchNews::Kind::kGone) node = ReadNode(object);
    }
    if (ours) NodeIs(std::move(node), news.kind == WatchNews::Kind::kAll);
  }
}

void ClusterWorker::NodeIs(std::optional<ApiNode> node, bool listed) {
  const SeenNode seen = node ? SeenNode{node->uid, node->labels} : SeenNode{};
  events_.NodeIs(seen.uid);
  writer_.Saw(node, listed);
  if (node_ == seen) return;  // its heartbeat, mostly
  if (seen.uid.empty()) missing_since_ = absl::Now();
  notes_.NodeIs(options_.node_name, !seen.uid.empty());
  node_ = seen;
  node_news_ = seen;
}

void ClusterWorker::StartWriting(Moment now) {
  const std::optional<NodeWrite> write = writer_.Next(now);
  if (!write) return;
  auto done = [this](const ApiAnswer& answer) {
    const Moment then = MomentNow();
    writer_.OnAnswer(answer, then);
    Account(answer.status, then);
  };
  switch (write->part) {
    case NodeWrite::Part::kCondition:
      return client_.Apply(NodePath() + "/status", write->document, std::move(done));
    case NodeWrite::Part::kLabels:
      return client_.Apply(NodePath(), write->document, std::move(done));
    case NodeWrite::Part::kStaleLabels:
      return client_.Merge(NodePath(), write->document, std::move(done));
  }
}

void ClusterWorker::StartPosting(Moment now) {
  const std::optional<EventCall> call = events_.Next(now.steady);
  if (!call) return;
  auto done = [this](const ApiAnswer& answer) {
    const Moment then = MomentNow();
    events_.OnAnswer(answer, then.steady);
    Account(answer.status, then);
  };
  switch (call->kind) {
    case EventCall::Kind::kFindPod:
      return client_.Get(call->path, std::move(done));
    case EventCall::Kind::kCreate:
      return client_.Create(call->path, call->document, std::move(done));
    case EventCall::Kind::kSeries:
      return client_.Merge(call->path, call->document, std::move(done));
  }
}

absl::Time ClusterWorker::Due() const {
  return std::min({watch_.due(), writer_.due(), events_.due()});
}

void ClusterWorker::Turn(absl::Time limit) {
  const Moment now = MomentNow();
  StartWatching(now);
  StartWriting(now);
  StartPosting(now);
  for (const absl::Status& lost : events_.TakeLost()) notes_.Lost(lost);
  const absl::Time until = std::min(limit, Due());
  transport_.Run(std::max(absl::ZeroDuration(), until - MonotonicNow()));
}

bool ClusterWorker::IsDone(absl::Time limit) const {
  // What is there has to be known before it can be written.
  const bool learns = watch_.wants() == ObjectWatch::Wants::kList &&
                      (listing_ || watch_.due() < limit) && writer_.wishes();
  const bool writes = writer_.busy() || (!writer_.written() && writer_.due() < limit);
  const bool posts = events_.busy() || events_.due() < limit;
  return !learns && !writes && !posts;
}

ClusterStatus ClusterWorker::Status() const {
  ClusterStatus status = status_;
  if (node_ && node_->uid.empty()) {
    status.last_error = kNoSuchNode;
    status.last_error_at = missing_since_;
  }
  status.connected = watch_.status().ok();
  status.written = writer_.written();
  status.requests = client_.counts();
  status.events_posted = events_.posted();
  status.events_dropped = events_.dropped();
  status.events_waiting = events_.waiting();
  return status;
}

}  // namespace vfio_agent
