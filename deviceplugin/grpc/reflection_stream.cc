#include "deviceplugin/grpc/reflection_stream.h"

#include <utility>

namespace vfio_agent {

void ReflectionStream::Await(Rpc& rpc, QueueLease queue, const Descriptors& descriptors) {
  new ReflectionStream(rpc, std::move(queue), descriptors);
}

ReflectionStream::ReflectionStream(Rpc& rpc, QueueLease queue, const Descriptors& descriptors)
    : rpc_(rpc), queue_(std::move(queue)), descriptors_(descriptors) {
  rpc_.RequestServerReflectionInfo(&context_, &stream_, queue_.get(), queue_.get(), &called_);
}

void ReflectionStream::Called(bool ok) {
  if (!ok) {
    delete this;  // the server shuts down
    return;
  }
  Await(rpc_, queue_, descriptors_);
  stream_.Read(&request_, &read_);
}

// Nothing more to read: the caller has closed its side, or has gone.
void ReflectionStream::Read(bool ok) {
  if (!ok) {
    stream_.Finish(grpc::Status::OK, &finished_);
    return;
  }
  stream_.Write(descriptors_.Answer(request_), &written_);
}

void ReflectionStream::Written(bool ok) {
  if (!ok) {
    stream_.Finish(grpc::Status::OK, &finished_);
    return;
  }
  stream_.Read(&request_, &read_);
}

}  // namespace vfio_agent
