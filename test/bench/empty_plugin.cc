// empty-plugin DIR: a device plugin that does nothing but register and answer Allocate with
// nothing, as the measure of what gRPC itself costs. Serves one device; ends on SIGTERM.
#include <grpcpp/grpcpp.h>

#include <csignal>
#include <string>

#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace {

class Service final : public v1beta1::DevicePlugin::CallbackService {
  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty*,
                                                   v1beta1::DevicePluginOptions*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const v1beta1::AllocateRequest*,
                                     v1beta1::AllocateResponse*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const std::string dir = argv[1];
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + dir + "/empty.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  const auto stub = v1beta1::Registration::NewStub(
      grpc::CreateChannel("unix:" + dir + "/kubelet.sock", grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint("empty.sock");
  request.set_resource_name("example.com/empty");
  v1beta1::Empty answer;
  const bool registered = stub->Register(&context, request, &answer).ok();
  int signal = 0;
  ::sigwait(&set, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  return registered ? 0 : 1;
}
