#include "deviceplugin/register_call.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <future>
#include <utility>

#include "absl/time/clock.h"
#include "deviceplugin/service.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// A channel of its own for each attempt: gRPC would otherwise remember that the last one failed
// and not even try for some seconds.
std::shared_ptr<grpc::Channel> Dial(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

// The channel must end on the thread of its owner and not in the callback: gRPC's last user joins
// gRPC's callback threads, and would join itself there.
struct RegisterCall::State {
  std::unique_ptr<v1beta1::Registration::Stub> stub;
  grpc::ClientContext context;
  v1beta1::RegisterRequest request;
  v1beta1::Empty response;
  std::future<void> finished;
};

RegisterCall::RegisterCall(std::unique_ptr<State> state) : state_(std::move(state)) {}

RegisterCall::~RegisterCall() {
  state_->context.TryCancel();
  state_->finished.wait();
}

std::unique_ptr<RegisterCall> RegisterCall::Start(const std::string& kubelet_socket,
                                                  const std::string& resource,
                                                  const std::string& endpoint, Done done) {
  auto state = std::make_unique<State>();
  // Shared, since the waiter may be gone before set_value() has returned.
  const auto finished = std::make_shared<std::promise<void>>();
  state->finished = finished->get_future();
  state->stub = v1beta1::Registration::NewStub(Dial(kubelet_socket));
  state->context.set_deadline(absl::ToChronoTime(absl::Now() + kRegisterTimeout));
  state->request.set_version("v1beta1");
  state->request.set_endpoint(endpoint);
  state->request.set_resource_name(resource);
  *state->request.mutable_options() = PluginOptions();
  state->stub->async()->Register(
      &state->context, &state->request, &state->response,
      [finished, done = std::move(done)](const grpc::Status& status) {
        done(absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message()));
        finished->set_value();
      });
  return std::unique_ptr<RegisterCall>(new RegisterCall(std::move(state)));
}

bool IsPermanent(const absl::Status& status) {
  const std::string text = Message(status);
  return text.find("is invalid") != std::string::npos ||
         text.find("not supported") != std::string::npos;
}

}  // namespace vfio_agent
