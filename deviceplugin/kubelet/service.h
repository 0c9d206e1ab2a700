// The kubelet's DevicePlugin service, one object for each server of one resource.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/offer/published.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"
#include "sysfs/device/driver_files.h"

namespace vfio_agent {

class Ledger;
class Tree;

// Something that the kubelet did. Told on the server's thread.
struct ServiceEvent {
  enum class Kind { kListOpened, kListClosed, kAllocated, kAllocateRefused, kPreStartRefused };
  Kind kind = Kind::kListOpened;
  std::vector<std::string> ids;  // of an allocation
  std::string text;              // why it was refused
  absl::Duration took;           // how long the answer to Allocate took
};

// Thin by rule: each method takes the newest offer, calls a pure function and turns its Status
// into gRPC's. Methods run on the server's thread, one after the other. Only VerifyUnit() touches
// the kernel, and it never waits for a device, nor longer for a driver than `ask` does: while
// Allocate runs, the kubelet admits no other pod of the whole node.
//
// gRPC's asynchronous API and not its callbacks: those are served by threads that look up several
// times a second, for as long as the process lives.
class DevicePluginService {
 public:
  using Observer = std::function<void(ServiceEvent)>;

  // `published`, `tree` and `ledger` outlive the server; `observer` is quick and is called on the
  // server's thread.
  DevicePluginService(Published& published, const Tree& tree, AskDrivers ask, Ledger& ledger,
                      Observer observer);
  ~DevicePluginService();

  DevicePluginService(const DevicePluginService&) = delete;
  DevicePluginService& operator=(const DevicePluginService&) = delete;

  // To be registered with the server before it starts.
  grpc::Service& rpc() { return rpc_; }

  // Takes every call from the started server's `queue`, which one thread serves.
  void Serve(const QueueLease& queue);

  // Ends every open stream, and each that is opened later at once: a server can then be shut down
  // without a wait.
  void EndStreams();

 private:
  using Rpc = v1beta1::DevicePlugin::AsyncService;
  class Streams;

  // Sends the whole list at once, then again after every change, until the kubelet hangs up or
  // EndStreams() is called. Any number of streams may be open: a new kubelet opens one while the
  // old one's is still dying.
  void AwaitStream(const QueueLease& queue);

  grpc::Status GetPreferredAllocation(const v1beta1::PreferredAllocationRequest& request,
                                      v1beta1::PreferredAllocationResponse& response);
  grpc::Status Allocate(const v1beta1::AllocateRequest& request,
                        v1beta1::AllocateResponse& response);
  grpc::Status PreStartContainer(const v1beta1::PreStartContainerRequest& request);

  Published& published_;
  const Tree& tree_;
  const AskDrivers ask_;
  Ledger& ledger_;
  Observer observer_;
  std::unique_ptr<Streams> streams_;
  Rpc rpc_;
};

// What GetDevicePluginOptions answers and Register tells.
v1beta1::DevicePluginOptions PluginOptions();

}  // namespace vfio_agent
