// DraHealth: what the kubelet is told of the health of devices that claims have.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/grpc/mutex.h"
#include "proto/dra_health_v1.grpc.pb.h"
#include "proto/dra_health_v1alpha1.grpc.pb.h"

namespace vfio_agent {

struct DeviceHealthValue {
  std::string pool;
  std::string device;
  bool healthy = false;
  std::string message;  // why not
  bool operator==(const DeviceHealthValue&) const = default;
};
using HealthList = std::vector<DeviceHealthValue>;

// The newest list, handed from the loop to the server's thread.
class PublishedHealth {
 public:
  using Listener = std::function<void()>;

  // Replaces the list; where it differs, calls every listener, on the caller's thread.
  void Set(HealthList list) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const HealthList> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Listeners must be quick, and may be called once more after Remove() has returned.
  int Add(Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(int token) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const HealthList> list_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const HealthList>();
  std::map<int, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  int next_token_ ABSL_GUARDED_BY(mutex_) = 1;
};

// How often the whole list is said again, and how long the kubelet believes it. Of a device that it
// hears nothing of it does not know whether it is well.
inline constexpr absl::Duration kHealthAgain = absl::Seconds(10);
inline constexpr absl::Duration kHealthTimeout = absl::Seconds(30);

// The service in both versions, on the socket of the DRAPlugin. While nobody watches, nothing runs.
class DraHealth {
 public:
  // `again`: as kHealthAgain.
  explicit DraHealth(PublishedHealth& published, absl::Duration again = kHealthAgain);
  ~DraHealth();

  DraHealth(const DraHealth&) = delete;
  DraHealth& operator=(const DraHealth&) = delete;

  // To be registered with the server before it starts.
  std::vector<grpc::Service*> rpcs() { return {&v1_, &v1alpha1_}; }

  // Takes every call from the started server's `queue`, which one thread serves.
  void Serve(const QueueLease& queue);

  // For UnixServer::Services::tick: says the list again where that is due.
  absl::Time Tick();

  // Ends every open stream, and each that is opened later.
  void EndStreams();

 private:
  class Streams;

  PublishedHealth& published_;
  const absl::Duration again_;
  absl::Time due_ = absl::InfiniteFuture();
  const std::unique_ptr<Streams> streams_;
  v1::DRAResourceHealth::AsyncService v1_;
  v1alpha1::DRAResourceHealth::AsyncService v1alpha1_;
};

}  // namespace vfio_agent
