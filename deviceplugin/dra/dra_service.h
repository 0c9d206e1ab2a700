// DraService: the kubelet's DRAPlugin service, both versions of it.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/dra/dra_claims.h"
#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/grpc/deferred_call.h"
#include "proto/dra_v1.grpc.pb.h"
#include "proto/dra_v1beta1.grpc.pb.h"

namespace vfio_agent {

// Each claim of a call has its own answer: an error of one hinders no other.
class DraService {
 public:
  // `handler` outlives the server, and whatever it still has to answer.
  explicit DraService(ClaimHandler& handler) : handler_(handler) {}

  DraService(const DraService&) = delete;
  DraService& operator=(const DraService&) = delete;

  // To be registered with the server before it starts.
  std::vector<grpc::Service*> rpcs() { return {&v1_, &v1beta1_}; }

  // Takes every call from the started server's `queue`, which one thread serves.
  void Serve(const QueueLease& queue);

  // Answers what is open, and what comes still, with an error that the kubelet tries again after.
  void EndCalls() { open_.End(); }

 private:
  ClaimHandler& handler_;
  OpenCalls open_;
  k8s::io::kubelet::pkg::apis::dra::v1::DRAPlugin::AsyncService v1_;
  k8s::io::kubelet::pkg::apis::dra::v1beta1::DRAPlugin::AsyncService v1beta1_;
};

}  // namespace vfio_agent
