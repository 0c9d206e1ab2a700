#include "agent/cluster/node_document.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

// More than Kubernetes has room for in an object: beyond it somebody plays games.
constexpr size_t kConditions = 256;

ApiJson NodeDocument(const std::string& node) {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node}}}};
}

// 0 where it is no number.
uint64_t NumberOf(const std::string& version) {
  uint64_t number = 0;
  return absl::SimpleAtoi(version, &number) ? number : 0;
}

}  // namespace

const ApiNode::Condition* ApiNode::Find(const std::string& type) const {
  const auto found = std::ranges::find_if(
      conditions, [&type](const Condition& condition) { return condition.said.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

std::map<std::string, std::string> ApiNode::OwnLabels() const {
  std::map<std::string, std::string> own;
  for (const auto& [key, value] : labels) {
    if (key.starts_with(kOwnLabels)) own.emplace(key, value);
  }
  return own;
}

ApiNode ReadNode(const ApiJson& node) {
  ApiNode facts{.uid = TextAt(node, {"metadata", "uid"}),
                .version = TextAt(node, {"metadata", "resourceVersion"})};
  if (const ApiJson* labels = At(node, {"metadata", "labels"}); labels != nullptr) {
    for (const auto& [key, value] : labels->items()) {
      if (labels->is_object() && value.is_string()) {
        facts.labels.emplace(key, value.get<std::string>());
      }
    }
  }
  const ApiJson* const conditions = At(node, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return facts;
  for (const ApiJson& condition : *conditions) {
    if (facts.conditions.size() == kConditions) break;
    facts.conditions.push_back({.said = {.type = TextAt(condition, {"type"}),
                                         .status = TextAt(condition, {"status"}),
                                         .reason = TextAt(condition, {"reason"}),
                                         .message = TextAt(condition, {"message"})},
                                .transition = TextAt(condition, {"lastTransitionTime"})});
  }
  return facts;
}

bool IsNewer(const std::string& one, const std::string& other) {
  const uint64_t number = NumberOf(one);
  return number == 0 || number >= NumberOf(other);
}

ApiJson ConditionDocument(const std::string& node, const std::optional<NodeCondition>& condition,
                          const ApiNode::Condition* before, absl::Time now) {
  ApiJson document = NodeDocument(node);
  document["status"] = ApiJson::object();
  if (!condition) return document;
  const bool same =
      before != nullptr && before->said.status == condition->status && !before->transition.empty();
  document["status"]["conditions"] =
      ApiJson::array({{{"type", condition->type},
                       {"status", condition->status},
                       {"reason", condition->reason},
                       {"message", condition->message},
                       {"lastHeartbeatTime", ApiTime(now)},
                       {"lastTransitionTime", same ? before->transition : ApiTime(now)}}});
  return document;
}

ApiJson LabelsDocument(const std::string& node, const std::map<std::string, std::string>& labels) {
  ApiJson document = NodeDocument(node);
  for (const auto& [key, value] : labels) document["metadata"]["labels"][key] = value;
  return document;
}

ApiJson StaleLabelsPatch(const std::map<std::string, std::string>& there,
                         const std::map<std::string, std::string>& wanted) {
  ApiJson labels = ApiJson::object();
  for (const auto& [key, value] : there) {
    if (key.starts_with(kOwnLabels) && !wanted.contains(key)) labels[key] = nullptr;
  }
  return {{"metadata", {{"labels", std::move(labels)}}}};
}

std::string ApiTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string ApiMicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

}  // namespace vfio_agent
