// MetricsHttp: /metrics, /healthz and /readyz for Prometheus and the kubelet's probes. The only
// user of civetweb.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

class MetricsHttp {
 public:
  struct Sources {
    StatusSource status;
    // Empty, or why the loop counts as hung.
    std::function<std::string()> ailment;
  };

  // Listens before it returns; the sources are called on threads of the server's. civetweb is
  // loaded only here: without metrics it costs nothing.
  static absl::StatusOr<std::unique_ptr<MetricsHttp>> Start(const std::string& listen,
                                                            Sources sources);
  ~MetricsHttp();

  MetricsHttp(const MetricsHttp&) = delete;
  MetricsHttp& operator=(const MetricsHttp&) = delete;

  // The port, also where the kernel has chosen it.
  int port() const;

 private:
  struct Running;
  explicit MetricsHttp(std::unique_ptr<Running> running);

  std::unique_ptr<Running> running_;
};

}  // namespace vfio_agent
