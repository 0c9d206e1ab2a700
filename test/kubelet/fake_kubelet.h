// FakeKubelet: the kubelet's side of the device-plugin and PodResources APIs, as far as a plugin
// can tell.
//
// It behaves as kubelets do, in their two generations: up to 1.36 a plugin is known by its
// resource, so the end of an old stream takes the new plugin of the same resource down; from 1.37
// on by resource and socket, so a Register with a known socket is answered "OK" and ignored.
// Register dials back and asks for the plugin's options before it answers. ListAndWatch is opened
// once for each registration and never again; its end, clean or not, makes every device unhealthy.
// Each message replaces the whole list. A start sweeps the directory first. Pods have what the test
// says (SetPod), whatever was allocated: between Allocate and the pod's end a kubelet may list it
// or not.
#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace vfio_agent {

struct FakeDevice {
  bool healthy = false;
  std::vector<int64_t> numa;
  bool operator==(const FakeDevice&) const = default;
};

// A Register call as it came, and what the plugin's own side looked like at that moment.
struct FakeRegisterCall {
  v1beta1::RegisterRequest request;
  absl::Time at;
  absl::Duration patience;               // what the plugin gives us; infinite: no deadline
  bool listening = false;                // its socket took a connection when the call came
  absl::Duration answered_after;         // its GetDevicePluginOptions, from the call on
  v1beta1::DevicePluginOptions options;  // what that said
  std::string refused;                   // our answer; empty: OK
};

struct FakeResource {
  std::map<std::string, FakeDevice> devices;
  std::string endpoint;  // file name of the newest plugin's socket
  bool stopped = false;  // its stream has ended: nothing can be allocated any more
  absl::Time stopped_at;
  int registrations = 0;  // Register calls, whatever came of them
  int messages = 0;       // lists received
  int healthy_lists = 0;  // those with a healthy device
  int repeats = 0;        // those that said the same as the one before on their stream
  v1beta1::ListAndWatchResponse newest;  // the last list as it came
  std::string ended_with;                // of the last stream that ended with an error
  std::vector<std::string> pushed;       // ids whose health went into the pods' status, in order
  std::vector<size_t> history;  // Healthy() after each list and each end, since ForgetHistory()
  size_t Healthy() const;
};
using FakeResources = std::map<std::string, FakeResource>;

// The two numbers of a resource in the Node's status.
struct FakeCapacity {
  size_t capacity = 0;
  size_t allocatable = 0;
  bool operator==(const FakeCapacity&) const = default;
};

class FakePods;

class FakeKubelet {
 public:
  enum class Generation { k136, k137 };
  enum class Sweep { kSockets, kAllFiles };  // 1.36 takes sockets, 1.32 every file but its own
  struct Options {
    std::string dir;
    Generation generation = Generation::k136;
    Sweep sweep = Sweep::kSockets;
    absl::Duration dial_timeout = absl::Seconds(10);
    std::string root_dir;                     // PodResources is served below it; empty: not at all
    absl::Duration grace = absl::Minutes(5);  // how long a resource outlives its last stream
    std::function<absl::Time()> clock;        // for `grace` only; absl::Now where there is none
  };
  using Stub = v1beta1::DevicePlugin::Stub;

  explicit FakeKubelet(Options options);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  // Sweeps the directory and listens on kubelet.sock. Nothing is remembered from before but pods
  // and the names of resources, as a checkpoint has them.
  absl::Status Start();
  // A part of Start() that real ones do seconds before the rest: PodResources answers, and nobody
  // listens on kubelet.sock yet.
  absl::Status StartPods();
  // Ends every stream and connection. `killed` leaves each kubelet.sock behind, with no one
  // listening.
  void Stop(bool killed = false);

  // Faults, for what comes after the call.
  void IgnoreLists(bool ignore);          // Register is answered, but ListAndWatch is never opened
  void RefuseRegister(std::string text);  // UNKNOWN with this text; empty: no more
  void DelayDial(absl::Duration delay);   // Register waits for so long before it dials back
  void HoldDisconnects(bool hold);        // the end of a stream is noticed only afterwards
  // Called within each Register after the options, before the answer.
  void DuringRegister(std::function<void(Stub& plugin)> probe);
  void HidePods(bool hidden);             // lists none, as long as it has not heard of them itself
  int PodLists() const;                   // how often it was asked for its pods
  void SilencePodResources(bool silent);  // the call is taken, but never answered
  void RefusePodResources(std::string text);

  // What PodResources tells: `ids` are all that the container has of the resource. These two need a
  // root directory, as the two faults do. RemovePod() is false where there is no such pod.
  void SetPod(const std::string& pod_namespace, const std::string& pod,
              const std::string& container, const std::string& resource,
              std::vector<std::string> ids);
  bool RemovePod(const std::string& pod_namespace, const std::string& pod);
  bool ServesPodResources() const { return pods_ != nullptr; }

  // Cuts the stream of the newest plugin, as when the connection is lost.
  void CancelList(const std::string& resource);

  FakeResources Resources() const;
  // Waits until `wanted` holds. False where it does not within `limit`.
  bool WaitFor(const std::function<bool(const FakeResources&)>& wanted, absl::Duration limit) const;
  bool WaitHealthy(const std::string& resource, size_t count, absl::Duration limit) const;
  // Of all resources.
  void ForgetHistory();

  // All Register calls since the first Start(), oldest first, whatever their resource.
  std::vector<FakeRegisterCall> RegisterCalls() const;
  // As in the Node's status, which keeps the name of a resource that is forgotten.
  std::map<std::string, FakeCapacity> Capacity();
  // The healthy units, by resource: what PodResources' GetAllocatableResources tells.
  std::map<std::string, std::vector<std::string>> AllocatableIds() const;
  // Drops the resource's newest plugin without a word to it, as kubelets up to 1.36 do with a new
  // plugin when an old one's stream ends: its devices are unhealthy, its stream stays open.
  void DropSilently(const std::string& resource);
  // What a pod's status says of a device: found by its id alone, and healthy where no list has it.
  bool PodStatusHealthy(const std::string& id) const;

  // For calls that no kubelet makes. Of the newest plugin; fails where none is registered.
  absl::StatusOr<std::shared_ptr<Stub>> Raw(const std::string& resource) const;

  // Calls on the newest plugin of the resource, as at pod admission and container start.
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(const std::string& resource,
                                                              const std::vector<std::string>& ids);
  absl::StatusOr<std::vector<std::string>> Preferred(const std::string& resource,
                                                     const std::vector<std::string>& available,
                                                     const std::vector<std::string>& must,
                                                     int size);
  absl::Status PreStart(const std::string& resource, const std::vector<std::string>& ids);

 private:
  class Service;
  struct Plugin;
  using PluginPtr = std::shared_ptr<Plugin>;

  grpc::Status Register(const v1beta1::RegisterRequest& request, absl::Time deadline);
  absl::Status Admit(const PluginPtr& plugin, absl::Time deadline, FakeRegisterCall& call);
  bool WaitForDial(Plugin& plugin);
  std::string WhyRefused(const v1beta1::RegisterRequest& request) const;
  bool Connect(const PluginPtr& plugin);
  absl::Status DialBack(Plugin& plugin, absl::Time deadline, FakeRegisterCall& call);
  void Watch(const PluginPtr& plugin);
  void TakeList(const PluginPtr& plugin, const v1beta1::ListAndWatchResponse& list);
  void StreamEnded(const PluginPtr& plugin, const std::string& error);
  void Disconnect(const PluginPtr& plugin);
  void Forget(absl::Time now);
  void SweepDirectory() const;
  absl::StatusOr<PluginPtr> Newest(const std::string& resource) const;

  const Options options_;
  std::unique_ptr<FakePods> pods_;  // null without a root directory
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool stopping_ = false;
  bool ignore_lists_ = false;
  bool hold_disconnects_ = false;
  std::string refuse_register_;
  absl::Duration dial_delay_;
  std::function<void(Stub&)> probe_;
  std::vector<FakeRegisterCall> calls_;
  std::map<std::string, absl::Time> remembered_;  // from the checkpoint: stopped since then
  std::set<std::string> forgotten_;               // still named by the Node, with nothing
  FakeResources resources_;
  std::map<std::string, std::vector<PluginPtr>> connected_;  // by resource, oldest first
  std::vector<PluginPtr> all_;                               // whose threads are to be joined
};

// "" for a name that the kubelet accepts as an extended resource, else its answer.
std::string CheckResourceName(const std::string& name);

}  // namespace vfio_agent
