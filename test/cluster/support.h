// What the tests of agent/cluster share: answers as the server gives them, and a Cluster with a
// fake API server.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/cluster/api_answer.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/transport.h"
#include "test/apiserver/fake_api_server.h"

namespace vfio_agent {

// A directory below /tmp that goes away with the object.
class AccountDir {
 public:
  AccountDir();
  ~AccountDir();
  AccountDir(const AccountDir&) = delete;
  AccountDir& operator=(const AccountDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Answers as Judge() gives them.
ApiAnswer Success(const std::string& body, int code = 200);
ApiAnswer Failure(int code, const std::string& message = "on request",
                  const std::string& reason = "Fault");
ApiAnswer NoAnswer();

// A Node's JSON; `condition` empty: without ours.
std::string NodeText(const std::string& version, const std::map<std::string, std::string>& labels,
                     const std::string& condition = "");

NodeCondition Ready(const std::string& status = "True", const std::string& message = "2 of 2");
ClusterEvent TestEvent(const std::string& name, int count = 1);

// The answer to one request without a Cluster.
HttpsAnswer Ask(const std::string& url, const std::string& ca);

std::string ReadFile(const std::string& path);

inline constexpr char kNode[] = "gpu-1";
inline constexpr char kNodePath[] = "/api/v1/nodes/gpu-1";
inline constexpr char kEvents[] = "/apis/events.k8s.io/v1/namespaces/default/events";

// Pauses of milliseconds, so that what is to be tried again is tried in the test's time.
ClusterOptions::Times QuickTimes();

// A fake API server with the Node gpu-1, and a Cluster that talks to it.
class ClusterStand {
 public:
  explicit ClusterStand(const std::string& host = "127.0.0.1");

  FakeApiServer& server() { return server_; }
  ClusterOptions& options() { return options_; }  // before Start()
  Cluster& Start();
  Cluster& cluster() { return *cluster_; }
  void Stop() { cluster_.reset(); }
  const std::string& account() const { return dir_.path(); }

  // Until `reached`; false where the time ran out.
  bool WaitFor(const std::function<bool()>& reached, absl::Duration limit = absl::Seconds(20)) {
    return server_.WaitFor(reached, limit);
  }
  // Until the cluster has shown a Node with this label.
  bool WaitForLabel(const std::string& key, const std::string& value);
  // All notes so far.
  std::string Notes();
  int wakes() const { return wakes_; }
  // Of our condition, as the server has it; "" where it has none.
  std::string ConditionField(const std::string& field) const;
  std::string Label(const std::string& key) const;

 private:
  AccountDir dir_;
  FakeApiServer server_;
  ClusterOptions options_;
  std::atomic<int> wakes_ = 0;
  std::string notes_;
  SeenNode seen_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace vfio_agent
