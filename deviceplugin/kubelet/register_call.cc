#include "deviceplugin/kubelet/register_call.h"

#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "deviceplugin/grpc/channel.h"
#include "deviceplugin/kubelet/service.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"
#include "sysfs/status.h"

namespace vfio_agent {

struct RegisterCall::State {
  absl::Status Call(const std::string& kubelet_socket, absl::Duration timeout);

  v1beta1::RegisterRequest request;
  grpc::ClientContext context;
  std::thread thread;
};

absl::Status RegisterCall::State::Call(const std::string& kubelet_socket, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  context.set_deadline(absl::ToChronoTime(deadline));
  grpc::CompletionQueue queue;
  ASSIGN_OR_RETURN(const auto channel, Dial(kubelet_socket));
  const auto stub = v1beta1::Registration::NewStub(channel);
  const auto call = stub->AsyncRegister(&context, request, &queue);
  v1beta1::Empty response;
  grpc::Status status;
  call->Finish(&response, &status, this);
  return AwaitEnd(queue, context, status, deadline);
}

RegisterCall::RegisterCall(std::unique_ptr<State> state) : state_(std::move(state)) {}

RegisterCall::~RegisterCall() {
  state_->context.TryCancel();
  state_->thread.join();
}

std::unique_ptr<RegisterCall> RegisterCall::Start(const std::string& kubelet_socket,
                                                  const std::string& resource,
                                                  const std::string& endpoint, Done done,
                                                  absl::Duration timeout) {
  auto state = std::make_unique<State>();
  state->request.set_version("v1beta1");
  state->request.set_endpoint(endpoint);
  state->request.set_resource_name(resource);
  *state->request.mutable_options() = PluginOptions();
  state->thread =
      std::thread([call = state.get(), kubelet_socket, timeout, done = std::move(done)] {
        done(call->Call(kubelet_socket, timeout));
      });
  return std::unique_ptr<RegisterCall>(new RegisterCall(std::move(state)));
}

bool IsPermanent(const absl::Status& status) {
  const std::string text = Message(status);
  return text.find("is invalid") != std::string::npos ||
         text.find("not supported") != std::string::npos;
}

}  // namespace vfio_agent
