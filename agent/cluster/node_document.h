// The Node as the API server has it, and what is written to it. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/cluster/api_json.h"
#include "agent/cluster/cluster.h"

namespace vfio_agent {

// Labels that begin so are this agent's.
inline constexpr char kOwnLabels[] = "vfio-agent/";

struct ApiNode {
  struct Condition {
    NodeCondition said;
    std::string transition;  // lastTransitionTime, as it is written there
    bool operator==(const Condition&) const = default;
  };
  std::string uid;
  std::string version;
  std::map<std::string, std::string> labels;
  std::vector<Condition> conditions;
  bool operator==(const ApiNode&) const = default;

  const Condition* Find(const std::string& type) const;
  std::map<std::string, std::string> OwnLabels() const;
};

ApiNode ReadNode(const ApiJson& node);

// False where `one` is certainly older than `other`: versions are numbers on every server there is,
// but nobody has promised that.
bool IsNewer(const std::string& one, const std::string& other);

// For server-side apply of nodes/NAME/status. Without a condition: what we had applied goes.
// `transition` is kept where the status has not changed; else it is `now`.
ApiJson ConditionDocument(const std::string& node, const std::optional<NodeCondition>& condition,
                          const ApiNode::Condition* before, absl::Time now);
// For server-side apply of nodes/NAME.
ApiJson LabelsDocument(const std::string& node, const std::map<std::string, std::string>& labels);
// For a merge patch of the same: takes away what of `there` is ours and not in `wanted`.
ApiJson StaleLabelsPatch(const std::map<std::string, std::string>& there,
                         const std::map<std::string, std::string>& wanted);

// As Kubernetes writes times: of conditions, and of events.
std::string ApiTime(absl::Time time);
std::string ApiMicroTime(absl::Time time);

}  // namespace vfio_agent
