// DraApi: what the DRA driver has to do with the API server, on a thread of its own: it reads
// claims, and keeps this node's ResourceSlices as they should be.
//
// Not Cluster's thread: that one ends with what is queued still to be written, while this one is to
// answer pods to the last and then be gone at once; and either may be there without the other. What
// the two do alike is in classes that both use (Transport, ApiClient, ObjectWatch, Retry, notes).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/cluster/api_client.h"
#include "agent/cluster/cluster.h"
#include "agent/dra/claim_desk.h"

namespace vfio_agent {

class DraApi final : public ClaimSource {
 public:
  struct Options {
    ClusterOptions cluster;  // server, files, node and times
    std::string driver;
  };

  // Errors as of Cluster::Start(). `wake` is called on the thread when there is something to note,
  // not after Shutdown() has returned.
  static absl::StatusOr<std::unique_ptr<DraApi>> Start(Options options, std::function<void()> wake);
  ~DraApi() override;  // shuts down; waits a second at most

  DraApi(const DraApi&) = delete;
  DraApi& operator=(const DraApi&) = delete;

  // All of these return at once, and may be called from any thread.

  // Published where it differs from what is there, and again after somebody else has changed it, as
  // the kubelet does when it starts. Nothing is written before the first call.
  void Want(std::vector<DraDevice> devices);
  // `done` is called on the thread; not any more once Shutdown() has returned.
  void FetchClaim(const ClaimRef& claim, Done done) override;
  // What deserves a line of log, each once, with a remedy.
  std::vector<std::string> TakeNotes();
  // Those that have ended, by verb and result.
  ApiClient::Counts Requests() const;
  // What the last Want() was told of stands there.
  bool written() const;
  struct Slices {
    bool some = false;    // any of ours stands there, as far as is known
    std::string failure;  // why not all is written, and what to do; empty where it is
    bool operator==(const Slices&) const = default;
  };
  Slices slices() const;

  void Shutdown(absl::Duration limit);

 private:
  struct Shared;
  explicit DraApi(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
};

}  // namespace vfio_agent
