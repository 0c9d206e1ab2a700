#include "agent/daemon/outlets.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "agent/outlets/status.h"
#include "deviceplugin/server.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {

void Outlets::Open(const Settings& settings) {
  OpenStatus(settings.state_dir);
  if (!settings.metrics_listen.empty()) OpenMetrics(settings.metrics_listen);
}

void Outlets::OpenStatus(const std::string& state_dir) {
  const auto path = SocketPath(state_dir, kStatusSocket);
  if (!path.ok()) return Add("no status socket: " + Message(path.status()));
  auto server = StatusServer::Start(
      *path, {.status = [this] { return book_.Newest(); },
              .alive = [this] { return book_.Ailment(MonotonicNow()).empty(); },
              .turned_away =
                  [this](const RefusedPeer& peer) {
                    Add(absl::StrFormat("pid %d of user %d was turned away from the status socket",
                                        peer.pid, peer.uid));
                    wake_();
                  }});
  if (!server.ok()) return Add("no status socket: " + Message(server.status()));
  status_ = *std::move(server);
}

void Outlets::OpenMetrics(const std::string& listen) {
  auto server =
      MetricsHttp::Start(listen, {.status = [this] { return book_.Newest(); },
                                  .ailment = [this] { return book_.Ailment(MonotonicNow()); }});
  if (!server.ok()) {
    return Add(
        absl::StrFormat("no metrics, /healthz and /readyz: %s; choose another metrics.listen "
                        "(empty: none) and restart the agent",
                        server.status().message()));
  }
  metrics_ = *std::move(server);
  // Where the kernel was to choose one, nobody knows it yet.
  if (listen.ends_with(":0")) {
    Add(absl::StrFormat("metrics are served on %s, port %d", listen, metrics_->port()));
  }
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
