// The kubelet's DevicePlugin service, one object for each server of one resource.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/published.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace vfio_agent {

class Tree;

// Something that the kubelet did. Told on one of gRPC's threads.
struct ServiceEvent {
  enum class Kind { kListOpened, kListClosed, kAllocated, kAllocateRefused, kPreStartRefused };
  Kind kind = Kind::kListOpened;
  std::vector<std::string> ids;  // of an allocation
  std::string text;              // why it was refused
  absl::Duration took;           // how long the answer to Allocate took
};

// Thin by rule: each method takes the newest offer, calls a pure function and turns its Status
// into gRPC's. Methods run on gRPC's threads. Only VerifyUnit() touches the kernel, and it never
// waits for a device: while Allocate runs, the kubelet admits no other pod of the whole node.
class DevicePluginService final : public v1beta1::DevicePlugin::CallbackService {
 public:
  using Observer = std::function<void(ServiceEvent)>;

  // `published` and `tree` outlive the server; `observer` is quick and may be called from several
  // threads at once.
  DevicePluginService(Published& published, const Tree& tree, Observer observer);
  ~DevicePluginService() override;
  DevicePluginService(const DevicePluginService&) = delete;
  DevicePluginService& operator=(const DevicePluginService&) = delete;

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty* request,
                                                   v1beta1::DevicePluginOptions* options) override;

  // Sends the whole list at once, then again after every change, until the kubelet hangs up or
  // EndStreams() is called. Any number of streams may be open: a new kubelet opens one while the
  // old one's is still dying.
  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext* context, const v1beta1::Empty* request) override;

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext* context, const v1beta1::PreferredAllocationRequest* request,
      v1beta1::PreferredAllocationResponse* response) override;

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override;

  grpc::ServerUnaryReactor* PreStartContainer(
      grpc::CallbackServerContext* context, const v1beta1::PreStartContainerRequest* request,
      v1beta1::PreStartContainerResponse* response) override;

  // Ends every open stream, and each that is opened later at once: a server can then be shut down
  // without a wait.
  void EndStreams();

 private:
  class Streams;

  Published& published_;
  const Tree& tree_;
  Observer observer_;
  std::unique_ptr<Streams> streams_;
};

// What GetDevicePluginOptions answers and Register tells.
v1beta1::DevicePluginOptions PluginOptions();

}  // namespace vfio_agent
