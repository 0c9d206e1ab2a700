#include "agent/dra/dra_api.h"

#include <unistd.h>

#include <csignal>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "agent/cluster/credentials.h"
#include "agent/cluster/transport.h"
#include "agent/dra/dra_api_worker.h"
#include "deviceplugin/grpc/mutex.h"
#include "sysfs/clock.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kEnd = absl::Seconds(1);

}  // namespace

// What both sides have. The thread keeps it alive: it may be stuck in a name's resolution when the
// agent ends, and nobody waits for that.
struct DraApi::Shared {
  Shared(std::unique_ptr<Transport> opened, std::function<void()> wake_loop)
      : transport(std::move(opened)), wake(std::move(wake_loop)) {}

  const std::unique_ptr<Transport> transport;
  std::promise<void> ended;
  std::future<void> end = ended.get_future();

  Mutex mutex;
  std::function<void()> wake ABSL_GUARDED_BY(mutex);
  std::optional<std::vector<DraDevice>> wanted ABSL_GUARDED_BY(mutex);
  std::optional<std::vector<DraDevice>> last ABSL_GUARDED_BY(mutex);  // of Want()
  std::vector<std::pair<uint64_t, ClaimRef>> asked ABSL_GUARDED_BY(mutex);
  std::vector<std::string> notes ABSL_GUARDED_BY(mutex);
  ApiClient::Counts requests ABSL_GUARDED_BY(mutex);
  bool written ABSL_GUARDED_BY(mutex) = false;
  Slices slices ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;

  // Held while one is called, so that none is after Shutdown().
  Mutex calling;
  uint64_t last_id ABSL_GUARDED_BY(calling) = 0;
  std::map<uint64_t, Done> waiting ABSL_GUARDED_BY(calling);

  bool TakeOrders(DraApiWorker& worker) ABSL_LOCKS_EXCLUDED(mutex);
  void Publish(DraApiWorker& worker) ABSL_LOCKS_EXCLUDED(mutex);
  void Answer(uint64_t id, const absl::StatusOr<std::string>& text) ABSL_LOCKS_EXCLUDED(calling);
  void Work(const Options& options, const std::string& server);
};

bool DraApi::Shared::TakeOrders(DraApiWorker& worker) {
  const MutexLock lock(mutex);
  if (wanted) worker.Want(*std::exchange(wanted, std::nullopt));
  for (auto& [id, claim] : std::exchange(asked, {})) {
    worker.Fetch(claim,
                 [this, id = id](const absl::StatusOr<std::string>& text) { Answer(id, text); });
  }
  return !stopping;
}

void DraApi::Shared::Answer(uint64_t id, const absl::StatusOr<std::string>& text) {
  const MutexLock lock(calling);
  const auto found = waiting.find(id);
  if (found == waiting.end()) return;
  const Done done = std::move(found->second);
  waiting.erase(found);
  done(text);
}

void DraApi::Shared::Publish(DraApiWorker& worker) {
  std::vector<std::string> told = worker.TakeNotes();
  const bool stands = worker.written();
  Slices now{.some = worker.some(), .failure = worker.failure()};
  const MutexLock lock(mutex);
  const bool before = written;
  requests = worker.requests();
  const bool changed = slices != now;
  slices = std::move(now);
  notes.insert(notes.end(), told.begin(), told.end());
  written = stands && !wanted;
  // With the lock held, so that nobody is woken whose loop is gone; it only writes an eventfd.
  if ((!told.empty() || written != before || changed) && wake) wake();
}

void DraApi::Shared::Work(const Options& options, const std::string& server) {
  DraApiWorker worker(options.cluster, options.driver, server, *transport);
  while (TakeOrders(worker)) {
    worker.Turn();
    Publish(worker);
  }
  transport->CancelAll();
}

DraApi::DraApi(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

absl::StatusOr<std::unique_ptr<DraApi>> DraApi::Start(Options options, std::function<void()> wake) {
  const ClusterOptions& cluster = options.cluster;
  const absl::StatusOr<std::string> server = ServerUrlHere(cluster.server);
  if (!server.ok()) return server.status();
  if (!IsNamePart(cluster.node_name)) {
    return absl::InvalidArgumentError("the node's name is not known (NODE_NAME)");
  }
  if (::access(cluster.token_file.c_str(), R_OK) != 0) {
    return absl::UnavailableError("no token of a service account: " + cluster.token_file);
  }
  absl::StatusOr<std::unique_ptr<Transport>> transport = Transport::Open();
  if (!transport.ok()) return transport.status();
  auto shared = std::make_shared<Shared>(*std::move(transport), std::move(wake));
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
  return std::unique_ptr<DraApi>(new DraApi(std::move(shared)));
}

DraApi::~DraApi() { Shutdown(kEnd); }

void DraApi::Want(std::vector<DraDevice> devices) {
  const MutexLock lock(shared_->mutex);
  // Else a loop that makes one picture after another would never see that it is written.
  if (shared_->last == devices) return;
  shared_->last = devices;
  shared_->wanted = std::move(devices);
  shared_->written = false;
  shared_->transport->Wake();
}

void DraApi::FetchClaim(const ClaimRef& claim, Done done) {
  uint64_t id = 0;
  {
    const MutexLock lock(shared_->calling);
    id = ++shared_->last_id;
    shared_->waiting.emplace(id, std::move(done));
  }
  const MutexLock lock(shared_->mutex);
  shared_->asked.emplace_back(id, claim);
  shared_->transport->Wake();
}

std::vector<std::string> DraApi::TakeNotes() {
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->notes, {});
}

ApiClient::Counts DraApi::Requests() const {
  const MutexLock lock(shared_->mutex);
  return shared_->requests;
}

bool DraApi::written() const {
  const MutexLock lock(shared_->mutex);
  return shared_->written;
}

DraApi::Slices DraApi::slices() const {
  const MutexLock lock(shared_->mutex);
  return shared_->slices;
}

void DraApi::Shutdown(absl::Duration limit) {
  {
    const MutexLock lock(shared_->mutex);
    if (shared_->stopping) return;
    shared_->stopping = true;
    shared_->transport->Wake();
  }
  shared_->end.wait_for(absl::ToChronoMilliseconds(limit));
  {
    const MutexLock lock(shared_->calling);
    shared_->waiting.clear();
  }
  const MutexLock lock(shared_->mutex);
  shared_->wake = nullptr;
}

}  // namespace vfio_agent
