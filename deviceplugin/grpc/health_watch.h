// HealthWatch: the calls of gRPC's health service that stay open and are told of each change.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "deviceplugin/grpc/completion.h"
#include "proto/health.grpc.pb.h"

namespace vfio_agent {

// Everything on the thread that serves the queue. A loop that hangs tells nobody that it does:
// while somebody watches, Tick() looks once a second. Nobody watches: nothing is looked at.
class HealthWatch {
 public:
  using Rpc = grpc::health::v1::Health::AsyncService;
  using State = grpc::health::v1::HealthCheckResponse::ServingStatus;
  using Ask = std::function<State(const std::string& service)>;

  // `rpc` outlives the object, and the object the server.
  HealthWatch(Rpc& rpc, Ask ask) : rpc_(rpc), ask_(std::move(ask)) {}

  // Takes every call from the started server's queue.
  void Await(const QueueLease& queue);

  // Tells those who watch what has changed; when to look again. For UnixServer::Services::tick.
  absl::Time Tick();

 private:
  class Stream;

  Rpc& rpc_;
  const Ask ask_;
  std::set<Stream*> open_;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace vfio_agent
