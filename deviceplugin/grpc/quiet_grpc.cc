#include "deviceplugin/grpc/quiet_grpc.h"

#include <grpc/event_engine/event_engine.h>
#include <grpc/grpc.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/grpc/timer_engine.h"

// A function of gRPC's own, in no header of its; meant for processes that fork. Weak: where another
// version of gRPC has none, the thread stays.
[[gnu::weak]] void grpc_timer_manager_set_threading(bool enabled);

namespace vfio_agent {
namespace {

Mutex mutex;
// Objects that want no timers.
int quiets ABSL_GUARDED_BY(mutex) = 0;

void LookAtTimers(bool enabled) {
  if (grpc_timer_manager_set_threading != nullptr) grpc_timer_manager_set_threading(enabled);
}

}  // namespace

QuietGrpc::QuietGrpc() {
  namespace engine = grpc_event_engine::experimental;
  const MutexLock lock(mutex);
  engine::SetEventEngineFactory([] { return std::make_unique<TimerEngine>(); });
  // Keeps gRPC from ending with its last user and from starting again, timers and all, with the
  // next.
  grpc_init();
}

void QuietGrpc::StopTimers() {
  if (stopped_) return;
  stopped_ = true;
  const MutexLock lock(mutex);
  if (++quiets == 1) LookAtTimers(false);
}

// A process that goes on, as a test does, may want them.
QuietGrpc::~QuietGrpc() {
  const MutexLock lock(mutex);
  if (stopped_ && --quiets == 0) LookAtTimers(true);
  grpc_shutdown();
}

}  // namespace vfio_agent
