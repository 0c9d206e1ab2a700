// ListStream: one more ListAndWatch stream than the kubelet has, and what came over it.
#pragma once

#include <grpcpp/client_context.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent::conformance {

using Lists = std::vector<v1beta1::ListAndWatchResponse>;

class ListStream {
 public:
  explicit ListStream(std::shared_ptr<FakeKubelet::Stub> plugin);
  ~ListStream();  // cancels the call
  ListStream(const ListStream&) = delete;
  ListStream& operator=(const ListStream&) = delete;

  // Waits until `wanted` holds of the lists so far.
  bool WaitFor(const std::function<bool(const Lists& lists)>& wanted, absl::Duration limit);
  Lists lists() const;
  bool ended() const;

 private:
  void Read();

  const std::shared_ptr<FakeKubelet::Stub> plugin_;
  grpc::ClientContext context_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Lists lists_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace vfio_agent::conformance
