#include "test/kubelet/tiny_plugin.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace vfio_agent {

TinyPlugin::TinyPlugin(std::string dir, std::string name)
    : dir_(std::move(dir)), name_(std::move(name)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + dir_ + "/" + name_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
}

TinyPlugin::~TinyPlugin() {
  EndStreams();
  server_->Shutdown(std::chrono::system_clock::now());
}

void TinyPlugin::SetDevices(const std::vector<std::string>& healthy,
                            const std::vector<std::string>& unhealthy) {
  v1beta1::ListAndWatchResponse list;
  const auto add = [&list](const std::vector<std::string>& ids, const char* health) {
    for (const std::string& id : ids) {
      v1beta1::Device& device = *list.add_devices();
      device.set_id(id);
      device.set_health(health);
    }
  };
  add(healthy, "Healthy");
  add(unhealthy, "Unhealthy");
  SetList(std::move(list));
}

void TinyPlugin::SetList(v1beta1::ListAndWatchResponse list) {
  const std::unique_lock lock(mutex_);
  list_ = std::move(list);
  ++version_;
  changed_.notify_all();
}

absl::Status TinyPlugin::Register(const std::string& resource) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
      "unix:" + dir_ + "/kubelet.sock", grpc::InsecureChannelCredentials(), arguments));
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(name_);
  request.set_resource_name(resource);
  grpc::ClientContext context;
  v1beta1::Empty answer;
  const grpc::Status status = stub->Register(&context, request, &answer);
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

void TinyPlugin::EndStreams() {
  const std::unique_lock lock(mutex_);
  ++ends_;
  changed_.notify_all();
}

grpc::Status TinyPlugin::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                                v1beta1::DevicePluginOptions* response) {
  response->set_pre_start_required(pre_start_);
  return grpc::Status::OK;
}

grpc::Status TinyPlugin::ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                                      grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  std::unique_lock lock(mutex_);
  ++streams_;
  const int ends = ends_;
  for (int told = 0; ends_ == ends && !context->IsCancelled();) {
    // gRPC's synchronous API does not tell when the caller hangs up.
    changed_.wait_for(lock, std::chrono::milliseconds(20),
                      [&] { return told != version_ || ends_ != ends; });
    if (told == version_) continue;
    told = version_;
    if (!writer->Write(list_)) break;
  }
  return grpc::Status::OK;
}

grpc::Status TinyPlugin::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                                  v1beta1::AllocateResponse* response) {
  const int call = ++allocate_calls_;
  for (int i = 0; i < request->container_requests_size(); ++i) {
    (*response->add_container_responses()->mutable_envs())["CALL"] = std::to_string(call);
  }
  return grpc::Status::OK;
}

grpc::Status TinyPlugin::PreStartContainer(grpc::ServerContext*,
                                           const v1beta1::PreStartContainerRequest*,
                                           v1beta1::PreStartContainerResponse*) {
  ++pre_start_calls_;
  return grpc::Status::OK;
}

}  // namespace vfio_agent
