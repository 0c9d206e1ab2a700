// Cluster: what the API server and this node tell each other, on a thread of its own.
//
// The loop says what it wants to stand there and takes what is news; nothing in it waits for the
// network. Without a token or a server there is no Cluster, no thread and no libcurl.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vfio_agent {

// ClusterStatus::last_error as long as the API server has no Node of ours.
inline constexpr char kNoSuchNode[] = "there is no Node of this name";

// For an agent that needs the API server and goes without it.
inline constexpr char kNoApiRemedy[] =
    "give it a token and rights in the cluster (overlays/api, or api.enabled in the chart); "
    "api.server must not be none";

// All times are of the wall clock: they are for people and for the API server.

struct NodeCondition {
  std::string type;     // "PassthroughReady"
  std::string status;   // "True", "False", "Unknown"
  std::string reason;   // UpperCamelCase
  std::string message;  // a sentence
  bool operator==(const NodeCondition&) const = default;
};

// What the API server is to know of this node.
struct WantedNode {
  std::optional<NodeCondition> condition;     // none: ours, if there is one, is removed
  std::map<std::string, std::string> labels;  // all "vfio-agent/..."; others of these are removed
  bool keeps_labels = false;  // false: somebody else (NFD) does; none is written or removed
  bool operator==(const WantedNode&) const = default;
};

struct PodRef {
  std::string pod_namespace;
  std::string name;
  std::string
      uid;  // may be empty: then the API server is asked, for `kubectl describe pod` needs it
  bool operator==(const PodRef&) const = default;
};

struct ClusterEvent {
  std::string reason;         // UpperCamelCase, up to 128 bytes
  std::string note;           // up to 1024 bytes; more is cut
  std::string type;           // "Normal" or "Warning"
  std::string action;         // what was done or tried: "Bind"; up to 128 bytes
  std::optional<PodRef> pod;  // none: the event is about the node
  int count = 1;              // how often, with those before
  absl::Time first;
  absl::Time last;
  // The name of the series, unique among all that this node ever posts and a DNS subdomain. What
  // has a name already posted is told as its continuation: only `count` and `last` are looked at.
  std::string name;
  bool operator==(const ClusterEvent&) const = default;
};

// The Node as the API server shows it.
struct SeenNode {
  std::string uid;  // empty: there is no such Node (not yet, or no more)
  std::map<std::string, std::string> labels;
  bool operator==(const SeenNode&) const = default;
};

struct ClusterStatus {
  std::string server;      // "https://10.96.0.1:443"
  bool connected = false;  // the last answer was one, and the Node is being watched
  bool written = false;    // what is wanted stands there
  std::string last_error;  // of the last failure, also where it has been made up for; may be empty
  absl::Time last_error_at = absl::InfinitePast();
  absl::Time last_success = absl::InfinitePast();
  // Requests that have ended, by verb ("get", "list", "watch", "create", "patch") and by result:
  // the HTTP code ("200"), or "error" where there was no answer.
  std::map<std::pair<std::string, std::string>, uint64_t> requests;
  uint64_t events_posted = 0;
  uint64_t events_dropped = 0;  // the queue was full, or the API server would not have them
  uint64_t events_waiting = 0;
  bool operator==(const ClusterStatus&) const = default;
};

struct ClusterOptions {
  std::string node_name;
  std::string server;  // "https://HOST[:PORT]"; empty: KUBERNETES_SERVICE_HOST and _PORT_HTTPS
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  std::string instance;  // who reports events: the pod's name; empty: the node's name
  std::string version;   // for the User-Agent
  // For tests that cannot wait.
  struct Times {
    absl::Duration connect = absl::Seconds(10);
    absl::Duration answer = absl::Seconds(30);      // for a whole request that is no watch
    absl::Duration watch = absl::Minutes(5);        // after which the server ends a watch
    absl::Duration first_pause = absl::Seconds(1);  // after a failure; then doubled
    absl::Duration longest_pause = absl::Minutes(1);
    absl::Duration rewrite_pause = absl::Seconds(30);  // where somebody changes what is ours
    absl::Duration heartbeat = absl::Minutes(5);       // the condition's lastHeartbeatTime
  } times;
};

class Cluster {
 public:
  // Unavailable, with a sentence why: no token, no server. InvalidArgument: a server or a node name
  // that is none. That there is no libcurl is a note: it is opened on the thread. `wake` is called
  // on the cluster's thread when there is news, not after Shutdown() has returned.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(ClusterOptions options,
                                                        std::function<void()> wake);
  // Shuts down, if that has not been done; waits a second at most.
  ~Cluster();

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // All of these return at once, and may be called from any thread.

  // Written where it differs from what is there, and again after somebody else has changed it.
  // Nothing is written before the first call.
  void Want(WantedNode wanted);
  // In order. A queue of 256: what is older gives way and is counted.
  void Post(std::vector<ClusterEvent> events);
  // The newest Node, where there was news since the last call.
  std::optional<SeenNode> TakeNode();
  // What deserves a line of log, each once, with a remedy.
  std::vector<std::string> TakeNotes();
  ClusterStatus Status() const;

  // Gives what is wanted and queued up to `limit` to be written and posted, then ends the thread.
  // Returns in time even where the API server hangs.
  void Shutdown(absl::Duration limit);

 private:
  struct Shared;
  explicit Cluster(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
};

}  // namespace vfio_agent
