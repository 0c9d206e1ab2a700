// UnaryCall: one call of a method that takes one message and answers with one.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <functional>

#include "deviceplugin/grpc/completion.h"

namespace vfio_agent {

// A method of `Rpc`, the generated asynchronous service. All that it names outlives the server.
template <typename Rpc, typename Request, typename Response>
struct UnaryMethod {
  using Ask = void (Rpc::*)(grpc::ServerContext*, Request*,
                            grpc::ServerAsyncResponseWriter<Response>*, grpc::CompletionQueue*,
                            grpc::ServerCompletionQueue*, void*);
  Rpc& rpc;
  QueueLease queue;
  Ask ask;  // Rpc's Request<Method>()
  std::function<grpc::Status(const Request&, Response&)> answer;
};

// It owns itself: from Await() until the answer is out, or until the server shuts down uncalled.
template <typename Rpc, typename Request, typename Response>
class UnaryCall {
 public:
  using Method = UnaryMethod<Rpc, Request, Response>;

  // Takes the next call of the method and then every further one.
  static void Await(const Method& method) { new UnaryCall(method); }

 private:
  explicit UnaryCall(const Method& method) : method_(method) {
    (method_.rpc.*method_.ask)(&context_, &request_, &writer_, method_.queue.get(),
                               method_.queue.get(), &called_);
  }

  void Called(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    Await(method_);
    const grpc::Status status = method_.answer(request_, response_);
    if (status.ok()) {
      writer_.Finish(response_, status, &answered_);
    } else {
      writer_.FinishWithError(status, &answered_);
    }
  }

  const Method method_;  // ends last, and the lease with it
  grpc::ServerContext context_;
  Request request_;
  Response response_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&context_};
  Completion called_{[this](bool ok) { Called(ok); }};
  // Whether the answer has arrived makes no difference to us.
  Completion answered_{[this](bool) { delete this; }};
};

}  // namespace vfio_agent
