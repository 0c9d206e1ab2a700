// TinyPlugin: a device plugin that does what a test tells it, to try the fake kubelet itself.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace vfio_agent {

class TinyPlugin final : public v1beta1::DevicePlugin::Service {
 public:
  // Listens on `dir`/`name` at once, with no devices.
  TinyPlugin(std::string dir, std::string name);
  ~TinyPlugin() override;
  TinyPlugin(const TinyPlugin&) = delete;
  TinyPlugin& operator=(const TinyPlugin&) = delete;

  // Open streams are told.
  void SetDevices(const std::vector<std::string>& healthy,
                  const std::vector<std::string>& unhealthy = {});
  void SetList(v1beta1::ListAndWatchResponse list);
  void WantPreStart() { pre_start_ = true; }
  absl::Status Register(const std::string& resource);
  void EndStreams();

  int allocate_calls() const { return allocate_calls_; }
  int pre_start_calls() const { return pre_start_calls_; }
  int streams() const { return streams_; }  // ever opened

 private:
  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* response) override;

  const std::string dir_, name_;
  std::atomic<bool> pre_start_ = false;
  std::atomic<int> allocate_calls_ = 0, pre_start_calls_ = 0, streams_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  v1beta1::ListAndWatchResponse list_;
  int version_ = 1;
  int ends_ = 0;  // calls of EndStreams()
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace vfio_agent
