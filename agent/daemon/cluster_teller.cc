#include "agent/daemon/cluster_teller.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/cluster/checkpoint_pods.h"
#include "agent/files.h"
#include "agent/version.h"
#include "sysfs/clock.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// Without it each start of an agent or a kubelet would be a transition of the condition, for which
// people have alerts.
constexpr absl::Duration kDoubt = absl::Seconds(10);

ClusterTeller::Clocks Now() { return {.steady = MonotonicNow(), .wall = absl::Now()}; }

// To the millisecond, so that a value survives the way over the socket; the epoch for never.
absl::Time Told(absl::Time time) {
  return time == absl::InfinitePast() ? absl::UnixEpoch()
                                      : absl::FromUnixMillis(absl::ToUnixMillis(time));
}

// Where NFD makes the labels, they are NFD's to take away as well.
bool KeepsLabels(const Settings& settings) {
  return settings.api_labels && settings.nfd_dir.empty();
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<std::string> NodeNameOf(const Settings& settings) {
  if (!settings.api_node_name.empty()) return settings.api_node_name;
  std::string name = Environment("NODE_NAME");
  struct utsname host = {};
  if (name.empty() && ::uname(&host) == 0) name = absl::AsciiStrToLower(host.nodename);
  if (IsNodeName(name)) return name;
  return absl::NotFoundError(
      absl::StrFormat("'%s' is no name of a Node: set api.nodeName", Printable(name)));
}

void ClusterTeller::Start(const Settings& settings, bool is_host, std::function<void()> wake) {
  if (settings.api_server == kNoServer) return;
  const bool named = !settings.api_server.empty();
  if (!named && (!is_host || Environment("KUBERNETES_SERVICE_HOST").empty())) return;
  absl::StatusOr<std::string> node = NodeNameOf(settings);
  absl::Status status = node.status();
  if (node.ok()) {
    auto cluster = Cluster::Start({.node_name = *node,
                                   .server = settings.api_server,
                                   .token_file = settings.api_token_file,
                                   .ca_file = settings.api_ca_file,
                                   .instance = Environment("POD_NAME"),
                                   .version = std::string(AgentVersion())},
                                  std::move(wake));
    status = cluster.status();
    if (status.ok()) cluster_ = *std::move(cluster);
  }
  if (status.ok()) {
    node_ = *node;
    series_ = EventSeries(node_);
  } else if (named || !absl::IsUnavailable(status) ||
             ::access(settings.api_token_file.c_str(), F_OK) == 0) {
    notes_.push_back(absl::StrFormat("the agent goes without the API server: %s", Message(status)));
  }
}

void ClusterTeller::Saw(const Event& event, bool again) {
  if (!on()) return;
  std::optional<NodeEvent> told = ToNodeEvent(event);
  if (!told) return;
  const Clocks now = Now();
  if (!again) waiting_.Add(*told, now.steady);
  series_.Add(*told, std::nullopt, now);
  if (told->pod) series_.Add(*told, told->pod, now);
}

void ClusterTeller::SawPods(const PodClaims& claims, const std::string& device_plugin_dir) {
  if (waiting_.empty()) return;
  std::optional<absl::StatusOr<std::string>> checkpoint;
  const auto uid_of = [&](const PodClaim& claim) -> std::string {
    if (!checkpoint) {
      checkpoint = ReadSmallFile(device_plugin_dir + "/" + kKubeletCheckpoint, kLargestCheckpoint);
    }
    if (!checkpoint->ok()) return "";
    return PodUidOf(**checkpoint, claim.container, claim.resource, claim.unit);
  };
  const Clocks now = Now();
  for (const auto& [event, pod] : waiting_.Match(claims, uid_of, now.steady)) {
    series_.Add(event, pod, now);
  }
}

// What may pass is not believed for a while.
bool ClusterTeller::IsDoubtful(const NodeCondition& condition, absl::Time now) {
  if (!MayPass(condition)) {
    doubt_until_ = absl::InfinitePast();
    return false;
  }
  if (doubt_until_ == absl::InfinitePast()) doubt_until_ = now + kDoubt;
  return now < doubt_until_;
}

void ClusterTeller::Tell(const Settings& settings, const Said& said) {
  if (!on()) return;
  const Clocks now = Now();
  NodeCondition condition = PassthroughReady(said.status);
  const bool doubtful = IsDoubtful(condition, now.steady);
  // What the agent before this one has said stays until this one knows better.
  if (!doubtful || wanted_) {
    WantedNode wanted{.keeps_labels = KeepsLabels(settings)};
    if (wanted.keeps_labels) wanted.labels = said.labels;
    if (settings.api_condition && doubtful) wanted.condition = wanted_->condition;
    if (settings.api_condition && !doubtful) wanted.condition = std::move(condition);
    if (wanted_ != wanted) cluster_->Want(wanted);
    wanted_ = std::move(wanted);
  }
  std::vector<ClusterEvent> events = series_.Due(now);
  if (settings.api_events && !events.empty()) cluster_->Post(std::move(events));
}

absl::Time ClusterTeller::due() const {
  if (!on()) return absl::InfiniteFuture();
  const bool doubt = doubt_until_ > MonotonicNow();
  return std::min(series_.due(), doubt ? doubt_until_ : absl::InfiniteFuture());
}

std::vector<std::string> ClusterTeller::TakeNotes() {
  std::vector<std::string> notes = std::exchange(notes_, {});
  if (!on()) return notes;
  for (std::string& note : cluster_->TakeNotes()) notes.push_back(std::move(note));
  return notes;
}

std::optional<SeenNode> ClusterTeller::TakeNode() {
  return on() ? cluster_->TakeNode() : std::nullopt;
}

ApiStatus ClusterTeller::Status() const {
  if (!on()) return {};
  const ClusterStatus status = cluster_->Status();
  return {.server = status.server,
          .node = node_,
          .connected = status.connected,
          .written = status.written,
          .last_error = status.last_error,
          .last_error_at = Told(status.last_error_at),
          .last_success = Told(status.last_success),
          .requests = status.requests,
          .events_posted = status.events_posted,
          .events_dropped = status.events_dropped + series_.dropped(),
          .events_waiting = status.events_waiting};
}

void ClusterTeller::End(const Settings& settings, bool released, absl::Duration limit) {
  if (!on()) return;
  if (wanted_ || released) {
    WantedNode wanted = wanted_.value_or(WantedNode{.keeps_labels = KeepsLabels(settings)});
    if (settings.api_condition) wanted.condition = PassthroughEnded(released);
    if (released) wanted.labels.clear();
    cluster_->Want(std::move(wanted));
  }
  std::vector<ClusterEvent> events = series_.Due(Now());
  if (settings.api_events && !events.empty()) cluster_->Post(std::move(events));
  cluster_->Shutdown(limit);
  cluster_.reset();
}

}  // namespace vfio_agent
