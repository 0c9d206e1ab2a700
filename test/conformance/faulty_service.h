// WidgetService: the DevicePlugin service of the faulty plugin.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "test/conformance/widgets.h"

namespace vfio_agent::conformance {

class WidgetService final : public v1beta1::DevicePlugin::Service {
 public:
  WidgetService(const Faults& faults, Widgets& widgets) : faults_(faults), widgets_(widgets) {}

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* response) override;

 private:
  grpc::Status Answer(const std::vector<std::string>& ids,
                      v1beta1::ContainerAllocateResponse& answer);
  void AddNodes(const std::vector<Widget>& chosen,
                v1beta1::ContainerAllocateResponse& answer) const;
  void AddVariable(const std::vector<Widget>& chosen,
                   v1beta1::ContainerAllocateResponse& answer) const;

  const Faults& faults_;
  Widgets& widgets_;
  std::atomic<int> answers_ = 0;
};

}  // namespace vfio_agent::conformance
