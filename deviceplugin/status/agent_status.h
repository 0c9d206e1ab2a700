// AgentStatus: what a running agent holds at one moment, as an immutable value. Everything that
// tells of a running agent (status, metrics, health) is made of one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/kubelet/plugin_event.h"
#include "iommu/tenancy/claims.h"

namespace vfio_agent {

struct UnitStatus {
  std::string id;
  std::optional<int> group;
  std::optional<int> numa_node;
  std::string state;
  std::string reason;
  bool listed = false;   // the kubelet is told of it
  bool healthy = false;  // and that it is healthy
  std::vector<PodClaim> pods;
  std::vector<int> groups;             // of a unit that is several groups; else empty
  std::vector<std::string> addresses;  // of a unit that is several functions; else empty
  std::string mdev_type;  // of a mediated device, with the address of its parent; else empty
  std::string parent;
  bool operator==(const UnitStatus&) const = default;
};

struct ResourceStatus {
  std::string name;
  std::vector<UnitStatus> units;
  std::vector<std::string> notes;  // what concerns several units together, a sentence each
  bool operator==(const ResourceStatus&) const = default;
};

struct RefusalStatus {
  std::string code;
  std::optional<int> group;
  std::string address;  // may be empty
  std::string text;
  std::string remedy;
  bool operator==(const RefusalStatus&) const = default;
};

struct DeviceStatus {
  std::string address;
  std::string vendor;
  std::string device;
  std::string driver;  // empty: none
  std::optional<int> group;
  std::optional<int> numa_node;
  std::string resource;
  bool makes_mdevs = false;  // stays with its driver, which makes mediated devices of it
  bool operator==(const DeviceStatus&) const = default;
};

// What one picture of the node says.
struct NodeStatus {
  std::string iommu;
  std::string pods_unknown;           // why it is not known which units pods have
  std::map<std::string, int> groups;  // by verdict
  std::vector<ResourceStatus> resources;
  std::vector<RefusalStatus> refusals;
  std::vector<DeviceStatus> devices;  // endpoints of selected groups
  bool operator==(const NodeStatus&) const = default;
};

struct JobStatus {
  int group = 0;
  std::string state;    // "at-work", "stuck", "elsewhere"
  std::string command;  // of a stuck one
  std::string where;    // likewise
  bool operator==(const JobStatus&) const = default;
};

struct PictureStatus {
  absl::Time at = absl::UnixEpoch();  // wall clock, to the millisecond
  absl::Duration took;
  std::string trigger;
  std::string error;  // why the last reading failed
  bool operator==(const PictureStatus&) const = default;
};

struct CountStatus {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  uint64_t value = 0;
  bool operator==(const CountStatus&) const = default;
};

// counts[i]: at most bounds[i] seconds and longer than the bound before; the last one: longer.
struct TimesStatus {
  std::string name;
  std::vector<double> bounds;
  std::vector<uint64_t> counts;
  double sum_seconds = 0;
  bool operator==(const TimesStatus&) const = default;
};

// Which of the node's modes is in force, and which it is on its way to.
struct ModeStatus {
  std::string mode;     // "vm-passthrough"; empty: not known yet
  std::string target;   // the same where it is on no way
  std::string state;    // "switching", "ready", "blocked"
  std::string reason;   // what it waits for; where it is ready: what is amiss all the same
  std::string label;    // of the node, which decides; empty: the configuration does
  bool unread = false;  // that label has not been read since the start
  absl::Time since = absl::UnixEpoch();  // of mode, target and state; the epoch: not told
  bool operator==(const ModeStatus&) const = default;
};

// How the agent stands with the cluster's API server. Times are of the wall clock, to the
// millisecond.
struct ApiStatus {
  std::string server;  // empty: the agent goes without
  std::string node;    // the Node's name there
  bool connected = false;
  bool written = false;  // condition and labels stand there as they are wanted
  std::string last_error;
  absl::Time last_error_at = absl::UnixEpoch();  // the epoch: never
  absl::Time last_success = absl::UnixEpoch();
  std::map<std::pair<std::string, std::string>, uint64_t> requests;  // by verb and result
  uint64_t events_posted = 0;
  uint64_t events_dropped = 0;
  uint64_t events_waiting = 0;
  bool operator==(const ApiStatus&) const = default;
};

struct AgentStatus {
  std::string version;
  int pid = 0;
  absl::Time started = absl::UnixEpoch();  // wall clock, to the millisecond
  bool kubelet = false;                    // it watches a list, or takes a connection
  bool ready = false;  // the node was read, and every resource that has units is registered
  // Who has the node, while this one waits for that; empty: nobody. Not for the status socket,
  // which is that one's too.
  std::string waits_for;
  // Why the configuration's file was not taken when it was read last, so that the one before is in
  // force; empty: it was.
  std::string config_rejected;
  std::vector<PluginStatus> plugins;
  // Never null. Shared, since it is the large part and changes with a picture only.
  std::shared_ptr<const NodeStatus> node = std::make_shared<const NodeStatus>();
  std::vector<JobStatus> jobs;
  PictureStatus picture;
  std::vector<CountStatus> counts;
  std::vector<TimesStatus> times;
  ModeStatus mode;
  ApiStatus api;
  // Of `node` the identity is compared: pictures that say the same are two all the same.
  bool operator==(const AgentStatus&) const = default;
};

// The newest status, never null. From any thread.
using StatusSource = std::function<std::shared_ptr<const AgentStatus>()>;

}  // namespace vfio_agent
