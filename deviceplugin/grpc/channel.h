// How we call the kubelet: a connection to one of its sockets, and a deadline that is kept.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vfio_agent {

// A channel over one connection to the kubelet's `socket`, made at once or not at all. Never waits.
//
// We connect and not gRPC: where a kubelet takes the connection and says nothing, gRPC would keep
// what it has begun until a timer of its own, which may be off (QuietGrpc), even when the channel
// is gone. An error has the errno (ErrnoOf).
absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const std::string& socket);

// Waits for the only operation of `queue`, the end of the call of `context`, and gives back the
// `status` that it writes. Cancels the call at `deadline`, which gRPC's own timers need not do.
//
// DeadlineExceeded where the time is up; otherwise the answer's code and words.
absl::Status AwaitEnd(grpc::CompletionQueue& queue, grpc::ClientContext& context,
                      const grpc::Status& status, absl::Time deadline);

}  // namespace vfio_agent
