// FakePods: the PodResources side of the fake kubelet.
#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/podresources_v1.grpc.pb.h"

namespace vfio_agent {

// Serves List and Get of the pods that it was told, on pod-resources/kubelet.sock below a root
// directory. It knows its pods also while it is stopped: a kubelet finds them again at its start.
class FakePods {
 public:
  explicit FakePods(const std::string& root_dir);
  ~FakePods();
  FakePods(const FakePods&) = delete;
  FakePods& operator=(const FakePods&) = delete;

  // Makes the directory where there is none, as kubelets do, and listens, unless it does already.
  absl::Status Start();
  // As FakeKubelet::Stop().
  void Stop(bool killed);

  // `ids` are all that the container has of the resource.
  void Set(const std::string& pod_namespace, const std::string& pod, const std::string& container,
           const std::string& resource, std::vector<std::string> ids);
  // False where there is no such pod.
  bool Remove(const std::string& pod_namespace, const std::string& pod);

  // What GetAllocatableResources answers from now on; asked on the server's threads. Until then
  // the method is not implemented, as on old kubelets.
  using Allocatable = std::map<std::string, std::vector<std::string>>;  // ids by resource
  void TellAllocatable(std::function<Allocatable()> allocatable);

  // Lists no pod for the time being, as a kubelet that has not heard of its pods yet.
  void Hide(bool hidden);
  // How often List was answered.
  int lists() const;
  void Silence(bool silent);
  void Refuse(std::string text);

 private:
  class Service;
  using Devices = std::map<std::string, std::vector<std::string>>;  // by resource
  using Containers = std::map<std::string, Devices>;                // by name
  using PodName = std::pair<std::string, std::string>;              // namespace, name

  grpc::Status Admit(const grpc::ServerContext& context);
  grpc::Status FindAllocatable(v1::AllocatableResourcesResponse& response) const;
  grpc::Status List(v1::ListPodResourcesResponse& response) const;
  grpc::Status FindPod(const PodName& name, v1::GetPodResourcesResponse& response) const;

  const std::string dir_;
  const std::string socket_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool silent_ = false;
  bool hidden_ = false;
  mutable int lists_ = 0;
  std::string refuse_;
  std::function<Allocatable()> allocatable_;
  std::map<PodName, Containers> pods_;
};

}  // namespace vfio_agent
