// DraDriver: the DRA driver of this node, driven from the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "agent/dra/claim_desk.h"
#include "deviceplugin/dra/dra_server.h"

namespace vfio_agent {

// Nothing here waits for the kubelet or for the API server.
class DraDriver {
 public:
  struct Options {
    ClaimPlaces places;
    std::string pool;          // the node's name
    std::string registry_dir;  // the kubelet's plugins_registry
    std::string state_dir;
    std::string boot_id;
    const Tree* tree = nullptr;
    Ledger* ledger = nullptr;
    ClaimSource* source = nullptr;  // outlives the object
  };

  // `wake` is called from any thread, until Shutdown() has returned, when Step() has news.
  DraDriver(Options options, std::function<void()> wake);
  ~DraDriver();

  DraDriver(const DraDriver&) = delete;
  DraDriver& operator=(const DraDriver&) = delete;

  // What there is to give now. Served from the first call on; in the same turn Step().
  void Set(DraOffers offers);

  // Serves, and serves anew where the socket is gone.
  struct News {
    std::vector<ClaimEvent> claims;
    std::vector<std::string> notes;  // what deserves a line of log, each once
  };
  News Step(absl::Time now);
  // When Step() must be called at the latest. InfiniteFuture: only when woken.
  absl::Time NextDeadline() const { return serve_at_; }

  // The kubelet has taken us.
  bool registered() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Full path; empty while nothing is served.
  std::string socket() const { return server_ == nullptr ? "" : server_->path(); }
  // Why nothing is served, or what the kubelet says against us.
  std::string failure() const ABSL_LOCKS_EXCLUDED(mutex_);
  PreparedClaims prepared() const { return desk_.prepared(); }

  // Removes the socket; what is prepared stays so.
  void Shutdown(absl::Duration limit);

 private:
  void RemoveDeadSockets();
  void Serve(absl::Time now);
  void Note(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  void Told(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Put(ClaimEvent event) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const uint32_t tag_;
  ClaimDesk desk_;
  PublishedHealth health_;
  bool open_ = false;
  int incarnation_ = 0;
  absl::Time serve_at_ = absl::InfiniteFuture();
  std::string last_failure_;
  std::vector<std::string> last_problems_;
  mutable Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  std::string refusal_ ABSL_GUARDED_BY(mutex_);  // of the kubelet, until it takes us
  News news_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<DraServer> server_;  // ends before what its calls use
};

}  // namespace vfio_agent
