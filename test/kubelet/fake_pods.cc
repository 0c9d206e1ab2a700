#include "test/kubelet/fake_pods.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <filesystem>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace vfio_agent {
namespace {

template <typename Pod>
v1::PodResources MakePod(const Pod& known) {
  const auto& [name, containers] = known;
  v1::PodResources pod;
  pod.set_namespace_(name.first);
  pod.set_name(name.second);
  for (const auto& [container_name, devices] : containers) {
    v1::ContainerResources& container = *pod.add_containers();
    container.set_name(container_name);
    for (const auto& [resource, ids] : devices) {
      v1::ContainerDevices& entry = *container.add_devices();
      entry.set_resource_name(resource);
      entry.mutable_device_ids()->Add(ids.begin(), ids.end());
    }
  }
  return pod;
}

}  // namespace

class FakePods::Service final : public v1::PodResourcesLister::Service {
 public:
  explicit Service(FakePods& pods) : pods_(pods) {}
  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    grpc::Status admitted = pods_.Admit(*context);
    return admitted.ok() ? pods_.List(*response) : admitted;
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext* context,
                                       const v1::AllocatableResourcesRequest*,
                                       v1::AllocatableResourcesResponse* response) override {
    grpc::Status admitted = pods_.Admit(*context);
    return admitted.ok() ? pods_.FindAllocatable(*response) : admitted;
  }
  grpc::Status Get(grpc::ServerContext* context, const v1::GetPodResourcesRequest* request,
                   v1::GetPodResourcesResponse* response) override {
    grpc::Status admitted = pods_.Admit(*context);
    if (!admitted.ok()) return admitted;
    return pods_.FindPod({request->pod_namespace(), request->pod_name()}, *response);
  }

 private:
  FakePods& pods_;
};

FakePods::FakePods(const std::string& root_dir)
    : dir_(root_dir + "/pod-resources"),
      socket_(dir_ + "/kubelet.sock"),
      service_(std::make_unique<Service>(*this)) {}

FakePods::~FakePods() { Stop(false); }

absl::Status FakePods::Start() {
  if (server_ != nullptr) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  if (error) return absl::UnavailableError(absl::StrFormat("%s: %s", dir_, error.message()));
  {
    const std::unique_lock lock(mutex_);
    stopping_ = false;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat("cannot listen on %s", socket_));
}

void FakePods::Stop(bool killed) {
  if (server_ == nullptr) return;
  std::error_code ignored;  // the directory may be gone
  // A gRPC server removes its socket; a kubelet that is killed does not.
  if (killed) std::filesystem::rename(socket_, socket_ + ".kept", ignored);
  {
    const std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  server_->Shutdown(absl::ToChronoTime(absl::InfinitePast()));
  server_.reset();
  if (killed) std::filesystem::rename(socket_ + ".kept", socket_, ignored);
}

void FakePods::Set(const std::string& pod_namespace, const std::string& pod,
                   const std::string& container, const std::string& resource,
                   std::vector<std::string> ids) {
  const std::unique_lock lock(mutex_);
  pods_[{pod_namespace, pod}][container][resource] = std::move(ids);
}

bool FakePods::Remove(const std::string& pod_namespace, const std::string& pod) {
  const std::unique_lock lock(mutex_);
  return pods_.erase({pod_namespace, pod}) == 1;
}

void FakePods::TellAllocatable(std::function<Allocatable()> allocatable) {
  const std::unique_lock lock(mutex_);
  allocatable_ = std::move(allocatable);
}

void FakePods::Hide(bool hidden) {
  const std::unique_lock lock(mutex_);
  hidden_ = hidden;
}

int FakePods::lists() const {
  const std::unique_lock lock(mutex_);
  return lists_;
}

void FakePods::Silence(bool silent) {
  const std::unique_lock lock(mutex_);
  silent_ = silent;
  changed_.notify_all();
}

void FakePods::Refuse(std::string text) {
  const std::unique_lock lock(mutex_);
  refuse_ = std::move(text);
}

// Returns when the call may be answered, or need not be any more.
grpc::Status FakePods::Admit(const grpc::ServerContext& context) {
  std::unique_lock lock(mutex_);
  while (silent_ && !stopping_) {
    if (context.IsCancelled()) return grpc::Status::CANCELLED;
    // gRPC's synchronous API does not tell when the caller hangs up.
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  if (stopping_) return {grpc::StatusCode::UNAVAILABLE, "the kubelet is stopping"};
  if (!refuse_.empty()) return {grpc::StatusCode::UNKNOWN, refuse_};
  return grpc::Status::OK;
}

grpc::Status FakePods::List(v1::ListPodResourcesResponse& response) const {
  const std::unique_lock lock(mutex_);
  ++lists_;
  if (hidden_) return grpc::Status::OK;
  for (const auto& pod : pods_) *response.add_pod_resources() = MakePod(pod);
  return grpc::Status::OK;
}

grpc::Status FakePods::FindAllocatable(v1::AllocatableResourcesResponse& response) const {
  std::function<Allocatable()> tell;
  {
    const std::unique_lock lock(mutex_);
    tell = allocatable_;
  }
  if (tell == nullptr) return {grpc::StatusCode::UNIMPLEMENTED, "this kubelet does not tell"};
  for (const auto& [resource, ids] : tell()) {
    v1::ContainerDevices& entry = *response.add_devices();
    entry.set_resource_name(resource);
    entry.mutable_device_ids()->Add(ids.begin(), ids.end());
  }
  return grpc::Status::OK;
}

grpc::Status FakePods::FindPod(const PodName& name, v1::GetPodResourcesResponse& response) const {
  const std::unique_lock lock(mutex_);
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return {grpc::StatusCode::NOT_FOUND,
            absl::StrFormat("pod %s in namespace %s not found", name.second, name.first)};
  }
  *response.mutable_pod_resources() = MakePod(*found);
  return grpc::Status::OK;
}

}  // namespace vfio_agent
