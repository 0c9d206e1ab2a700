// ReflectionStream: one call of server reflection: requests come in, each has its answer.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/grpc/descriptors.h"
#include "proto/reflection.grpc.pb.h"

namespace vfio_agent {

// It owns itself: from Await() until the caller has no more requests, or until the server shuts
// down. One operation at a time, all on the thread that serves the queue.
class ReflectionStream {
 public:
  using Rpc = grpc::reflection::v1alpha::ServerReflection::AsyncService;

  // Takes the next call and then every further one. Both that are named outlive the server.
  static void Await(Rpc& rpc, QueueLease queue, const Descriptors& descriptors);

 private:
  ReflectionStream(Rpc& rpc, QueueLease queue, const Descriptors& descriptors);

  void Called(bool ok);
  void Read(bool ok);
  void Written(bool ok);

  Rpc& rpc_;
  const QueueLease queue_;  // ends last
  const Descriptors& descriptors_;
  grpc::ServerContext context_;
  grpc::reflection::v1alpha::ServerReflectionRequest request_;
  grpc::ServerAsyncReaderWriter<grpc::reflection::v1alpha::ServerReflectionResponse,
                                grpc::reflection::v1alpha::ServerReflectionRequest>
      stream_{&context_};
  Completion called_{[this](bool ok) { Called(ok); }};
  Completion read_{[this](bool ok) { Read(ok); }};
  Completion written_{[this](bool ok) { Written(ok); }};
  Completion finished_{[this](bool) { delete this; }};
};

}  // namespace vfio_agent
