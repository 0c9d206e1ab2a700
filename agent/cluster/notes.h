// ClusterNotes: which failures are told, so that each is told once: again only after it was over.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace vfio_agent {

// What to do about a request that failed so. `rule` is what a role needs for it: "nodes: list,
// watch".
std::string RequestRemedy(absl::StatusCode code, const std::string& rule);

class ClusterNotes {
 public:
  explicit ClusterNotes(std::string server) : server_(std::move(server)) {}

  // What `doing` ("watch this Node") has come to, each time that it is known anew. A server that is
  // only away for some seconds, as it is when it is updated, is not told of.
  void Hear(const std::string& doing, const std::string& rule, const absl::Status& status,
            absl::Time now);
  // Whether there is a Node of this name, each time that it is known anew.
  void NodeIs(const std::string& name, bool there);
  // What nothing can make good, such as an event that the server does not take: the first of each
  // kind, and not more than a few.
  void Lost(const absl::Status& status);
  // Somebody else changes what is ours, again and again.
  void Contested();

  std::vector<std::string> Take() { return std::exchange(said_, {}); }

 private:
  void Say(std::string text) { said_.push_back(std::move(text)); }

  struct Trouble {
    absl::Time since;
    std::set<absl::StatusCode> told;
  };

  std::string server_;
  std::map<std::string, Trouble> troubles_;  // by what was being done
  std::set<absl::StatusCode> lost_;          // that were told
  bool contested_ = false;
  bool missing_ = false;  // told that there is no Node
  std::vector<std::string> said_;
};

}  // namespace vfio_agent
