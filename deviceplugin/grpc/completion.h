// Completion: what a gRPC completion queue is given for each operation that it is to tell about.
#pragma once

#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <utility>

namespace vfio_agent {

// A server's queue in the hands of whoever may still give it an operation: every call, and every
// wait for one. The last to let go shuts the queue down. Server::Shutdown() does not tell when that
// may be done: it returns while calls of a connection that broke are not over yet.
using QueueLease = std::shared_ptr<grpc::ServerCompletionQueue>;

inline QueueLease LeaseOut(grpc::ServerCompletionQueue& queue) {
  return {&queue, [](grpc::ServerCompletionQueue* unused) { unused->Shutdown(); }};
}

// Its address is the operation's tag. `proceed` runs on the thread that serves the queue, once for
// each operation; it may delete the object that holds the completion.
class Completion {
 public:
  explicit Completion(std::function<void(bool ok)> proceed) : proceed_(std::move(proceed)) {}
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // `ok` as gRPC told it: false where the operation came to nothing.
  static void Proceed(void* tag, bool ok) { static_cast<const Completion*>(tag)->proceed_(ok); }

 private:
  const std::function<void(bool ok)> proceed_;
};

}  // namespace vfio_agent
