// Checks of the mode, and of the API server that tells the label by which it may go.
#include "absl/strings/str_format.h"
#include "agent/cluster/cluster.h"
#include "agent/doctor/checks.h"
#include "agent/mode/mode_switch.h"
#include "agent/mode/mode_words.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr char kServedAllTheSame[] =
    "devices are served all the same; see the note in the daemon's log, and that "
    "api.nodeName is this node's name in `kubectl get nodes`";

// By the words of ApiError().
bool IsTurnedAway(const ApiStatus& api, std::string_view code) {
  return api.last_error.starts_with(code);
}

std::string RemedyForSilence(const ApiStatus& api, bool waited_for) {
  if (IsTurnedAway(api, "HTTP 401")) {
    return "the token is not valid there: that the service account is still there, and that "
           "api.tokenFile is a token of this cluster and not an old one";
  }
  if (IsTurnedAway(api, "HTTP 403")) {
    return "the service account's role lacks the rule `nodes: get, list, watch`: "
           "packaging/kustomize/components/api/access.yaml (overlays/api, or api.enabled in the "
           "chart); `kubectl auth can-i watch nodes "
           "--as=system:serviceaccount:vfio-agent:vfio-agent`";
  }
  if (!waited_for) return kServedAllTheSame;
  return "that api.server is the API server's address and can be reached from this node: "
         "`curl -k ADDRESS/livez`; it is asked again and again";
}

// It makes no difference to devices, unless their mode waits for it.
Finding NotConnected(const AgentStatus& status, const std::string& who, const std::string& why) {
  const ApiStatus& api = status.api;
  std::string read = absl::StrFormat("no answer from %s%s", who, why);
  if (IsTurnedAway(api, "HTTP 401"))
    read = absl::StrFormat("%s: does not know the token%s", who, why);
  if (IsTurnedAway(api, "HTTP 403")) read = absl::StrFormat("%s: may not see the Node%s", who, why);
  return {.state = status.mode.unread ? State::kFail : State::kWarn,
          .read = std::move(read),
          .remedy = RemedyForSilence(api, status.mode.unread)};
}

std::string Way(const ModeStatus& mode) {
  const std::string way = mode.target == mode.mode ? mode.mode : mode.mode + " -> " + mode.target;
  if (mode.since == absl::UnixEpoch()) return absl::StrFormat("%s (%s)", way, mode.state);
  return absl::StrFormat("%s (%s since %s)", way, mode.state,
                         absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", mode.since, absl::UTCTimeZone()));
}

}  // namespace

// What the daemon alone can know: the token is its own.
Findings LookAtApiServer(const DoctorFacts& facts) {
  const AgentStatus* const status = StatusOf(facts);
  if (status == nullptr) return {NoStatus(facts)};
  const ApiStatus& api = status->api;
  if (api.server.empty() && !status->mode.label.empty()) {
    return {Fail(absl::StrFormat("not used, so nobody tells the node's label %s, by which the mode "
                                 "goes: nothing is bound or given back",
                                 Printable(status->mode.label, 256)),
                 kNoApiRemedy)};
  }
  if (api.server.empty()) {
    return {Skipped("not used: the daemon has no token, or api.server is none")};
  }
  const std::string who =
      absl::StrFormat("%s as node %s", Printable(api.server, 256), Printable(api.node, 256));
  const std::string why = api.last_error.empty() ? "" : ": " + Printable(api.last_error, 512);
  if (!api.connected) return {NotConnected(*status, who, why)};
  if (!api.written && api.last_error == kNoSuchNode) {
    const bool decides = !status->mode.label.empty();
    return {
        {.state = decides ? State::kFail : State::kWarn,
         .read = absl::StrFormat("%s%s", who, why),
         .remedy = "set api.nodeName or NODE_NAME to what `kubectl get nodes` calls this node"}};
  }
  if (!api.written) {
    return {Warn("not everything is written to " + who + why,
                 "the rights that it needs: packaging/kustomize/components/api/access.yaml")};
  }
  return {Ok(who)};
}

Findings LookAtMode(const DoctorFacts& facts) {
  const AgentStatus* const status = StatusOf(facts);
  if (status == nullptr) return {NoStatus(facts)};
  const ModeStatus& mode = status->mode;
  if (mode.mode.empty()) return {Unknown("the daemon has not read the node yet")};
  const std::string why = mode.reason.empty() ? "" : ": " + Printable(mode.reason, 1024);
  const std::string read = Printable(Way(mode), 256) + why;
  if (mode.unread) {
    return {Fail(read, "the check \"API server\" says what keeps the daemon from the label")};
  }
  if (mode.state != Name(ModeState::kReady)) return {Warn(read, RemedyForWait(mode))};
  if (mode.reason.empty()) return {Ok(read)};
  return {Warn(read, absl::StrFormat("kubectl label node NODE --overwrite %s=MODE: container, "
                                     "vm-passthrough, vm-vgpu or what mode.values has",
                                     Printable(mode.label, 256)))};
}

}  // namespace vfio_agent
