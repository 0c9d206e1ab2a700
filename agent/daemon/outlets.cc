#include "agent/daemon/outlets.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "agent/outlets/status.h"
#include "deviceplugin/kubelet/server.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {

void Outlets::OpenWaiting(const Settings& settings) {
  OpenMetrics(settings.metrics_listen).IgnoreError();
}

void Outlets::Open(const Settings& settings) {
  OpenStatus(settings.state_dir);
  if (const absl::Status status = OpenMetrics(settings.metrics_listen); !status.ok()) {
    Add(
        absl::StrFormat("no metrics, /healthz and /readyz: %s; choose another metrics.listen "
                        "(empty: none) and restart the agent",
                        status.message()));
  }
}

void Outlets::OpenStatus(const std::string& state_dir) {
  const auto path = SocketPath(state_dir, kStatusSocket);
  if (!path.ok()) return AddNoStatus(path.status());
  auto server = StatusServer::Start(
      *path, {.status = [this] { return book_.Newest(); },
              .alive = [this] { return book_.Ailment(MonotonicNow()).empty(); },
              .turned_away =
                  [this](const RefusedPeer& peer) {
                    Add(absl::StrFormat("pid %d of user %d was turned away from the status socket",
                                        peer.pid, peer.uid));
                    wake_();
                  }});
  if (!server.ok()) return AddNoStatus(server.status());
  status_ = *std::move(server);
}

absl::Status Outlets::OpenMetrics(const std::string& listen) {
  if (listen.empty() || metrics_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      metrics_,
      MetricsHttp::Start(listen, {.status = [this] { return book_.Newest(); },
                                  .ailment = [this] { return book_.Ailment(MonotonicNow()); }}));
  // Where the kernel was to choose one, nobody knows it yet.
  if (listen.ends_with(":0")) {
    Add(absl::StrFormat("metrics are served on %s, port %d", listen, metrics_->port()));
  }
  return absl::OkStatus();
}

void Outlets::AddNoStatus(const absl::Status& status) {
  Add(
      absl::StrFormat("no status socket: %s; `status` and `release` do not find this agent, and a "
                      "probe that asks `health` has it restarted: make stateDir writable, its path "
                      "shorter",
                      Message(status)));
}

void Outlets::Add(std::string note) {
  const MutexLock lock(mutex_);
  notes_.push_back(std::move(note));
}

std::vector<std::string> Outlets::TakeNotes() {
  const MutexLock lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace vfio_agent
