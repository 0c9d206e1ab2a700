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

struct FakeResource {
  std::map<std::string, FakeDevice> devices;
  std::string endpoint;   // file name of the newest plugin's socket
  bool stopped = false;   // its stream has ended: nothing can be allocated any more
  int registrations = 0;  // Register calls, whatever came of them
  int messages = 0;       // lists received
  size_t Healthy() const;
};
using FakeResources = std::map<std::string, FakeResource>;

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
    std::string root_dir;  // PodResources is served below it; empty: not at all
  };

  explicit FakeKubelet(Options options);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  // Sweeps the directory and listens on kubelet.sock. Nothing is remembered from before but pods.
  absl::Status Start();
  // Ends every stream and connection. `killed` leaves each kubelet.sock behind, with no one
  // listening.
  void Stop(bool killed = false);

  // Faults, for what comes after the call.
  void IgnoreLists(bool ignore);          // Register is answered, but ListAndWatch is never opened
  void RefuseRegister(std::string text);  // UNKNOWN with this text; empty: no more
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
  std::string WhyRefused(const v1beta1::RegisterRequest& request) const;
  bool Connect(const PluginPtr& plugin);
  absl::Status DialBack(Plugin& plugin, absl::Time deadline);
  void Watch(const PluginPtr& plugin);
  void TakeList(const PluginPtr& plugin, const v1beta1::ListAndWatchResponse& list);
  void StreamEnded(const PluginPtr& plugin);
  void Disconnect(const PluginPtr& plugin);
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
  std::string refuse_register_;
  FakeResources resources_;
  std::map<std::string, std::vector<PluginPtr>> connected_;  // by resource, oldest first
  std::vector<PluginPtr> all_;                               // whose threads are to be joined
};

// "" for a name that the kubelet accepts as an extended resource, else its answer.
std::string CheckResourceName(const std::string& name);

}  // namespace vfio_agent
