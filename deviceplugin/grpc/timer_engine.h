// TimerEngine: what gRPC runs later, and not at all while there is nothing to run.
#pragma once

#include <grpc/event_engine/event_engine.h>

#include <memory>

namespace vfio_agent {

// As much of an EventEngine as gRPC 1.51 asks for: closures, now or later. It connects, listens and
// resolves with other means. One thread, started by the first closure.
class TimerEngine final : public grpc_event_engine::experimental::EventEngine {
 public:
  TimerEngine();
  ~TimerEngine() override;

  using Work = absl::AnyInvocable<void()>;

  void Run(Closure* closure) override;
  void Run(Work work) override;
  TaskHandle RunAfter(Duration when, Closure* closure) override;
  TaskHandle RunAfter(Duration when, Work work) override;
  // False where the work has been begun.
  bool Cancel(TaskHandle handle) override;
  bool IsWorkerThread() override;

  // Unimplemented; see above.
  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(
      Listener::AcceptCallback on_accept, absl::AnyInvocable<void(absl::Status)> on_shutdown,
      const grpc_event_engine::experimental::EndpointConfig& config,
      std::unique_ptr<grpc_event_engine::experimental::MemoryAllocatorFactory>
          memory_allocator_factory) override;
  ConnectionHandle Connect(OnConnectCallback on_connect, const ResolvedAddress& address,
                           const grpc_event_engine::experimental::EndpointConfig& args,
                           grpc_event_engine::experimental::MemoryAllocator memory_allocator,
                           Duration timeout) override;
  bool CancelConnect(ConnectionHandle handle) override;
  std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions& options) override;

 private:
  class Queue;

  std::shared_ptr<Queue> queue_;  // shared with its thread, which may be the one that deletes us
};

}  // namespace vfio_agent
