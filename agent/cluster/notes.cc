#include "agent/cluster/notes.h"

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kShort = absl::Seconds(10);

bool MayPass(absl::StatusCode code) {
  return code != absl::StatusCode::kPermissionDenied &&
         code != absl::StatusCode::kFailedPrecondition &&
         code != absl::StatusCode::kInvalidArgument;
}

}  // namespace

std::string RequestRemedy(absl::StatusCode code, const std::string& rule) {
  switch (code) {
    case absl::StatusCode::kPermissionDenied:
      return absl::StrFormat("the service account's role lacks the rule %s", rule);
    case absl::StatusCode::kUnauthenticated:
      return "the token is not valid there: was the service account removed, or is the token file "
             "another cluster's?";
    case absl::StatusCode::kFailedPrecondition:
      return "the CA file does not vouch for this server: the two must be of one cluster, and the "
             "address one that the certificate names";
    case absl::StatusCode::kInvalidArgument:
      return "a fault of vfio-agent, please report it";
    case absl::StatusCode::kNotFound:
      return "is there a Node of this name? (api.nodeName, NODE_NAME)";
    default:
      return "it is tried again, and everything else goes on without it";
  }
}

void ClusterNotes::Hear(const std::string& doing, const std::string& rule,
                        const absl::Status& status, absl::Time now) {
  const auto found = troubles_.find(doing);
  if (status.ok()) {
    if (found == troubles_.end()) return;
    if (!found->second.told.empty()) {
      Say(absl::StrFormat("API server %s: %s: it works again", server_, doing));
    }
    troubles_.erase(found);
    return;
  }
  Trouble& trouble = troubles_.try_emplace(doing, Trouble{.since = now}).first->second;
  if (trouble.told.contains(status.code())) return;
  if (MayPass(status.code()) && now - trouble.since < kShort) return;
  trouble.told.insert(status.code());
  Say(absl::StrFormat("API server %s: cannot %s: %s: %s", server_, doing, Message(status),
                      RequestRemedy(status.code(), rule)));
}

void ClusterNotes::NodeIs(const std::string& name, bool there) {
  if (missing_ == !there) return;
  missing_ = !there;
  if (there) return Say(absl::StrFormat("API server %s: there is a Node %s now", server_, name));
  Say(
      absl::StrFormat("API server %s: there is no Node %s, so it gets no condition and no labels, "
                      "and none is read: "
                      "set api.nodeName or NODE_NAME to what `kubectl get nodes` calls this node",
                      server_, name));
}

void ClusterNotes::Lost(const absl::Status& status) {
  if (!lost_.insert(status.code()).second) return;
  Say(absl::StrFormat("API server %s: %s: it is not posted again", server_, Message(status)));
}

void ClusterNotes::Contested() {
  if (std::exchange(contested_, true)) return;
  Say(absl::StrFormat(
      "API server %s: somebody else changes this Node's condition or its labels vfio-agent/...: "
      "`kubectl get node -o yaml --show-managed-fields` says who; they are put right ever more "
      "slowly",
      server_));
}

}  // namespace vfio_agent
