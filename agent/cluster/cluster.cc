#include "agent/cluster/cluster.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/cluster/api_json.h"
#include "agent/cluster/cluster_worker.h"
#include "agent/cluster/credentials.h"
#include "agent/cluster/event_queue.h"
#include "agent/cluster/transport.h"
#include "deviceplugin/grpc/mutex.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kEnd = absl::Seconds(1);
// How long ends at once are waited for after the time for what is queued is over.
constexpr absl::Duration kLast = absl::Milliseconds(100);

}  // namespace

// What both sides have. The thread keeps it alive: it may be stuck in a name's resolution when the
// agent ends, and nobody waits for that.
struct Cluster::Shared {
  explicit Shared(std::function<void()> wake_loop) : wake(std::move(wake_loop)) {}

  std::promise<void> ended;
  std::future<void> end = ended.get_future();

  Mutex mutex;
  std::function<void()> wake ABSL_GUARDED_BY(mutex);
  std::unique_ptr<Transport> transport ABSL_GUARDED_BY(mutex);  // once the thread has opened it
  std::optional<WantedNode> wanted ABSL_GUARDED_BY(mutex);
  std::vector<ClusterEvent> events ABSL_GUARDED_BY(mutex);
  uint64_t overflow ABSL_GUARDED_BY(mutex) = 0;  // dropped before the thread took them
  absl::Time stop_at ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::optional<SeenNode> node ABSL_GUARDED_BY(mutex);
  std::vector<std::string> notes ABSL_GUARDED_BY(mutex);
  ClusterStatus status ABSL_GUARDED_BY(mutex);

  // For the thread: there is something for it.
  void Nudge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (transport) transport->Wake();
  }

  // On the thread, all of these. TakeOrders: until when to work; the past: not at all.
  Transport* Open() ABSL_LOCKS_EXCLUDED(mutex);
  absl::Time TakeOrders(ClusterWorker& worker) ABSL_LOCKS_EXCLUDED(mutex);
  void Publish(ClusterWorker& worker) ABSL_LOCKS_EXCLUDED(mutex);
  void Work(const ClusterOptions& options, const std::string& server);
};

absl::Time Cluster::Shared::TakeOrders(ClusterWorker& worker) {
  const MutexLock lock(mutex);
  if (wanted) worker.Want(*std::exchange(wanted, std::nullopt));
  worker.Post(std::exchange(events, {}));
  if (!stopping) return absl::InfiniteFuture();
  worker.Hurry();
  return worker.IsDone(stop_at) ? absl::InfinitePast() : stop_at;
}

void Cluster::Shared::Publish(ClusterWorker& worker) {
  std::optional<SeenNode> seen = worker.TakeNode();
  std::vector<std::string> told = worker.TakeNotes();
  ClusterStatus now = worker.Status();
  const MutexLock lock(mutex);
  now.events_dropped += overflow;
  const bool news =
      seen || !told.empty() || now.connected != status.connected || now.written != status.written;
  if (seen) node = std::move(seen);
  notes.insert(notes.end(), told.begin(), told.end());
  status = std::move(now);
  // With the lock held, so that nobody is woken whose loop is gone; it only writes an eventfd.
  if (news && wake) wake();
}

// Here and not in Start(): opening libcurl and its thirty libraries takes three times as long as
// all else that the agent does before it is with the kubelet.
Transport* Cluster::Shared::Open() {
  absl::StatusOr<std::unique_ptr<Transport>> opened = Transport::Open();
  const MutexLock lock(mutex);
  if (opened.ok()) {
    transport = *std::move(opened);
    return transport.get();
  }
  status.last_error = Message(opened.status());
  status.last_error_at = absl::Now();
  notes.push_back(absl::StrFormat("API server %s: %s: it is not asked, and everything else goes on",
                                  status.server, status.last_error));
  if (wake) wake();
  return nullptr;
}

void Cluster::Shared::Work(const ClusterOptions& options, const std::string& server) {
  Transport* const opened = Open();
  if (opened == nullptr) return;
  ClusterWorker worker(options, server, *opened);
  for (absl::Time until = TakeOrders(worker); until > MonotonicNow(); until = TakeOrders(worker)) {
    worker.Turn(until);
    Publish(worker);
  }
  // Here and not on the loop's thread: it may have to wait for the resolution of a name.
  opened->CancelAll();
}

Cluster::Cluster(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(ClusterOptions options,
                                                        std::function<void()> wake) {
  const absl::StatusOr<std::string> server = ServerUrlHere(options.server);
  if (!server.ok()) return server.status();
  if (!IsObjectName(options.node_name)) {
    return absl::InvalidArgumentError("the node's name is not known (NODE_NAME)");
  }
  // Whether they are of any use is known when they are used, and they may become so.
  if (::access(options.token_file.c_str(), R_OK) != 0) {
    return absl::UnavailableError("no token of a service account: " + options.token_file);
  }
  auto shared = std::make_shared<Shared>(std::move(wake));
  {
    const MutexLock lock(shared->mutex);
    shared->status.server = *server;
  }
  // Signals are the loop's. libcurl leaves SIGPIPE to its caller.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([shared, options, server = *server] {
    shared->Work(options, server);
    shared->ended.set_value();
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return std::unique_ptr<Cluster>(new Cluster(std::move(shared)));
}

Cluster::~Cluster() { Shutdown(kEnd); }

void Cluster::Want(WantedNode wanted) {
  const MutexLock lock(shared_->mutex);
  shared_->wanted = std::move(wanted);
  shared_->Nudge();
}

void Cluster::Post(std::vector<ClusterEvent> events) {
  const MutexLock lock(shared_->mutex);
  std::vector<ClusterEvent>& queue = shared_->events;
  queue.insert(queue.end(), events.begin(), events.end());
  if (queue.size() > EventQueue::kCapacity) {
    const auto over = static_cast<std::ptrdiff_t>(queue.size() - EventQueue::kCapacity);
    queue.erase(queue.begin(), queue.begin() + over);
    shared_->overflow += static_cast<uint64_t>(over);
  }
  shared_->Nudge();
}

std::optional<SeenNode> Cluster::TakeNode() {
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->node, std::nullopt);
}

std::vector<std::string> Cluster::TakeNotes() {
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->notes, {});
}

ClusterStatus Cluster::Status() const {
  const MutexLock lock(shared_->mutex);
  return shared_->status;
}

void Cluster::Shutdown(absl::Duration limit) {
  {
    const MutexLock lock(shared_->mutex);
    if (shared_->stopping) return;
    shared_->stopping = true;
    shared_->stop_at = MonotonicNow() + limit;
    shared_->Nudge();
  }
  shared_->end.wait_for(absl::ToChronoMilliseconds(limit + kLast));
  const MutexLock lock(shared_->mutex);
  shared_->wake = nullptr;
}

}  // namespace vfio_agent
