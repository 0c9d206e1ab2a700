#include "agent/dra/dra_driver.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "deviceplugin/kubelet/stale_sockets.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// How soon a server that could not be started is tried again: the kubelet makes its directory.
constexpr absl::Duration kServeAgain = absl::Seconds(5);

HealthList HealthOf(const std::string& pool, const std::vector<DraDevice>& devices) {
  HealthList list;
  for (const DraDevice& device : devices) {
    list.push_back({.pool = pool,
                    .device = device.name,
                    .healthy = device.taint.empty(),
                    .message = device.reason});
  }
  return list;
}

}  // namespace

DraDriver::DraDriver(Options options, std::function<void()> wake)
    : options_(std::move(options)),
      tag_(std::random_device()()),
      desk_({.places = options_.places,
             .pool = options_.pool,
             .state_dir = options_.state_dir,
             .boot_id = options_.boot_id,
             .tree = options_.tree,
             .ledger = options_.ledger,
             .source = options_.source,
             .observer = [this](ClaimEvent event) { Put(std::move(event)); }}),
      wake_(std::move(wake)) {}

DraDriver::~DraDriver() { Shutdown(absl::ZeroDuration()); }

void DraDriver::Note(const std::string& text) {
  const MutexLock lock(mutex_);
  news_.notes.push_back(text);
}

void DraDriver::Put(ClaimEvent event) {
  const MutexLock lock(mutex_);
  news_.claims.push_back(std::move(event));
  if (wake_) wake_();
}

void DraDriver::Told(const absl::Status& status) {
  const MutexLock lock(mutex_);
  registered_ = status.ok();
  std::string refusal;
  if (status.ok()) {
    news_.notes.push_back(
        absl::StrFormat("the kubelet has the DRA driver %s", options_.places.driver));
  } else {
    refusal = absl::StrFormat("the kubelet does not take the DRA driver %s: %s",
                              options_.places.driver, Message(status));
    // It asks again each second or so, and says the same.
    if (refusal != refusal_) news_.notes.push_back(refusal);
  }
  refusal_ = std::move(refusal);
  if (wake_) wake_();
}

std::string DraDriver::failure() const {
  if (!last_failure_.empty()) return last_failure_;
  const MutexLock lock(mutex_);
  return refusal_;
}

bool DraDriver::registered() const {
  const MutexLock lock(mutex_);
  return registered_;
}

void DraDriver::Set(DraOffers offers) {
  if (!open_) {
    open_ = true;
    serve_at_ = absl::InfinitePast();
    for (const std::string& problem : desk_.Open()) Note(problem);
  }
  health_.Set(HealthOf(options_.pool, offers.devices));
  std::vector<std::string> problems =
      desk_.Set(std::make_shared<const DraOffers>(std::move(offers)));
  for (const std::string& problem : problems) {
    if (std::ranges::count(last_problems_, problem) == 0) Note(problem);
  }
  last_problems_ = std::move(problems);
}

DraDriver::News DraDriver::Step(absl::Time now) {
  if (server_ != nullptr && server_->SocketIsGone()) {
    Note(absl::StrFormat("%s has been removed: another one takes its place", server_->path()));
    server_->Shutdown(absl::Now());
    server_.reset();
    const MutexLock lock(mutex_);
    registered_ = false;
    refusal_.clear();
    serve_at_ = now;
  }
  if (serve_at_ <= now) Serve(now);
  const MutexLock lock(mutex_);
  return std::exchange(news_, {});
}

// What killed agents have left: the kubelet would call each of them for ever.
void DraDriver::RemoveDeadSockets() {
  const StaleSockets stale = RemoveStaleSockets(options_.registry_dir);
  for (const std::string& path : stale.removed) {
    Note(absl::StrFormat("%s was left by an agent that is gone: removed", path));
  }
  for (const std::string& kept : stale.kept) {
    Note(absl::StrFormat("a socket of an agent that is gone cannot be removed: %s", kept));
  }
}

void DraDriver::Serve(absl::Time now) {
  if (incarnation_ == 0) RemoveDeadSockets();
  absl::StatusOr<std::unique_ptr<DraServer>> server =
      DraServer::Start({.driver = options_.places.driver,
                        .registry_dir = options_.registry_dir,
                        .tag = tag_,
                        .incarnation = incarnation_ + 1,
                        .handler = &desk_,
                        .health = &health_,
                        .told = [this](const absl::Status& status) { Told(status); }});
  if (server.ok()) {
    server_ = *std::move(server);
    ++incarnation_;
    serve_at_ = absl::InfiniteFuture();
    last_failure_.clear();
    return;
  }
  serve_at_ = now + kServeAgain;
  const std::string failure = Message(server.status());
  if (failure != last_failure_) {
    Note(
        absl::StrFormat("the DRA driver cannot be served: %s: is the kubelet's plugins_registry "
                        "mounted into this container?",
                        failure));
  }
  last_failure_ = failure;
}

void DraDriver::Shutdown(absl::Duration limit) {
  if (server_ != nullptr) server_->Shutdown(absl::Now() + limit);
  server_.reset();
  serve_at_ = absl::InfiniteFuture();
  const MutexLock lock(mutex_);
  wake_ = nullptr;
}

}  // namespace vfio_agent
