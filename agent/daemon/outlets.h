// Outlets: where others can ask what the running daemon holds: the status socket, and HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/config/settings.h"
#include "agent/outlets/metrics_http.h"
#include "agent/outlets/status_book.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/status/status_server.h"

namespace vfio_agent {

class Outlets {
 public:
  // `book` outlives the object; `wake` is called from any thread when TakeNotes() has something.
  Outlets(const StatusBook& book, std::function<void()> wake)
      : book_(book), wake_(std::move(wake)) {}

  // Opens HTTP alone, while another daemon has the node: this one's probes are asked already. An
  // address that is taken, mostly by that daemon, is Open()'s to complain of.
  void OpenWaiting(const Settings& settings);

  // Opens both as the settings say. What cannot be opened is a note, and goes without: devices are
  // served all the same. gRPC has to be quiet already (QuietGrpc).
  void Open(const Settings& settings);

  // What deserves a line of log, once.
  std::vector<std::string> TakeNotes() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void AddNoStatus(const absl::Status& status);
  void Add(std::string note) ABSL_LOCKS_EXCLUDED(mutex_);
  void OpenStatus(const std::string& state_dir);
  absl::Status OpenMetrics(const std::string& listen);

  const StatusBook& book_;
  const std::function<void()> wake_;
  Mutex mutex_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<StatusServer> status_;
  std::unique_ptr<MetricsHttp> metrics_;
};

}  // namespace vfio_agent
