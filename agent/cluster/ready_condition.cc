#include "agent/cluster/ready_condition.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/plan/unsafe.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongest = 1024;  // for people; the API server takes 32 KiB
constexpr size_t kMostNamed = 4;

struct Served {
  size_t units = 0;                    // on the kubelet's lists
  size_t healthy = 0;                  // of them, healthy
  size_t given = 0;                    // of the healthy ones, of resources that the kubelet watches
  size_t left = 0;                     // that the plan has and no list
  size_t unsafe = 0;                   // healthy, and nothing isolates whoever has them
  std::vector<std::string> resources;  // that give: "8 nvidia.com/…"
  std::vector<std::string> unregistered;  // "nvidia.com/…: why"
  std::set<std::string> errors;           // of what is registered: slices that do not follow
  std::map<std::string, int> reasons;     // why units are not healthy
};

const PluginStatus* FindPlugin(const AgentStatus& status, const std::string& resource) {
  const auto found = std::ranges::find(status.plugins, resource, &PluginStatus::resource);
  return found == status.plugins.end() ? nullptr : &*found;
}

void Count(const AgentStatus& status, const ResourceStatus& resource, Served& served) {
  size_t healthy = 0, listed = 0;
  for (const UnitStatus& unit : resource.units) {
    served.left += unit.listed ? 0 : 1;
    listed += unit.listed ? 1 : 0;
    healthy += unit.healthy ? 1 : 0;
    served.unsafe += unit.healthy && IsUnsafe(unit.reason) ? 1 : 0;
    if (!unit.healthy && !unit.reason.empty()) ++served.reasons[unit.reason];
  }
  served.units += listed;
  served.healthy += healthy;
  if (listed == 0) return;
  const PluginStatus* const plugin = FindPlugin(status, resource.name);
  if (plugin != nullptr && plugin->registered) {
    served.given += healthy;
    if (!plugin->last_error.empty()) served.errors.insert(plugin->last_error);
    if (healthy > 0) served.resources.push_back(absl::StrFormat("%d %s", healthy, resource.name));
  } else {
    const std::string why = plugin == nullptr ? "" : plugin->last_error;
    served.unregistered.push_back(resource.name + (why.empty() ? "" : ": " + why));
  }
}

Served LookAt(const AgentStatus& status) {
  Served served;
  for (const ResourceStatus& resource : status.node->resources) Count(status, resource, served);
  return served;
}

// The first few, and how many more there are.
std::string List(std::vector<std::string> words, const char* separator = ", ") {
  const size_t more = words.size() > kMostNamed ? words.size() - kMostNamed : 0;
  if (more > 0) words.resize(kMostNamed);
  return absl::StrJoin(words, separator) +
         (more > 0 ? absl::StrFormat("%sand %d more", separator, more) : "");
}

std::string Refused(const NodeStatus& node) {
  const auto found = node.groups.find("refused");
  if (found == node.groups.end() || found->second == 0) return "";
  std::map<std::string, int> codes;
  for (const RefusalStatus& refusal : node.refusals) ++codes[refusal.code];
  std::vector<std::string> words;
  for (const auto& [code, count] : codes) words.push_back(absl::StrFormat("%d %s", count, code));
  return absl::StrFormat("%d selected group%s refused (%s)", found->second,
                         found->second == 1 ? " is" : "s are", List(words));
}

std::string Sick(const Served& served) {
  std::vector<std::string> words;
  for (const auto& [reason, count] : served.reasons) {
    words.push_back(absl::StrFormat("%d: %s", count, reason));
  }
  return List(words, "; ");
}

NodeCondition Say(std::string_view status, std::string_view reason,
                  const std::vector<std::string>& sentences) {
  std::vector<std::string> said;
  for (const std::string& sentence : sentences) {
    if (!sentence.empty()) said.push_back(sentence);
  }
  return {.type = kReadyCondition,
          .status = std::string(status),
          .reason = std::string(reason),
          .message = Printable(absl::StrJoin(said, "; "), kLongest)};
}

constexpr std::string_view kTrue = "True", kFalse = "False", kUnknown = "Unknown";
constexpr char kAsk[] = "vfio-agent plan on the node says why and what to do";

// Why a node that was read gives nothing.
NodeCondition SayNothingGiven(const AgentStatus& status, const Served& served) {
  const NodeStatus& node = *status.node;
  const std::string refused = Refused(node);
  if (served.healthy > 0) {
    return Say(kFalse, status.kubelet ? "NotRegistered" : "KubeletDown",
               {status.kubelet ? "not registered: " + List(served.unregistered, "; ")
                               : "the kubelet does not answer on its socket",
                absl::StrFormat("%d units wait for it", served.healthy), refused});
  }
  if (node.iommu != "on" && served.units == 0) {
    return Say(kFalse, "IommuOff",
               {"the IOMMU is " + node.iommu +
                    ", so no device can be isolated: switch it on in "
                    "the firmware and by the kernel's command line",
                refused});
  }
  if (served.units > 0) {
    return Say(
        kFalse, "NoHealthyUnits",
        {absl::StrFormat("none of %d units can be given", served.units), Sick(served), refused});
  }
  if (!refused.empty()) return Say(kFalse, "AllRefused", {refused, kAsk});
  if (served.left > 0) {
    return Say(kFalse, "Binding",
               {absl::StrFormat("%d units are not bound yet", served.left), Sick(served)});
  }
  return Say(kFalse, "NothingSelected", {"the configuration selects no device of this node", kAsk});
}

bool IsUnderway(const ModeStatus& mode) {
  return mode.state == "switching" || mode.state == "blocked";
}

NodeCondition SayMode(const ModeStatus& mode) {
  return Say(kFalse, mode.state == "blocked" ? "ModeBlocked" : "ModeSwitching",
             {"to mode " + mode.target, mode.reason});
}

// Also where the mode is not complete: one device that is held keeps no other from its guest.
NodeCondition SayServing(const AgentStatus& status, const Served& served) {
  const ModeStatus& mode = status.mode;
  const size_t sick = served.units - served.healthy;
  return Say(
      kTrue, "Serving",
      {List(served.resources),
       served.unsafe == 0 ? ""
                          : absl::StrFormat("UNSAFE: nothing isolates the users of %d units from "
                                            "the host (noiommu)",
                                            served.unsafe),
       served.unregistered.empty() ? "" : "not registered: " + List(served.unregistered, "; "),
       List({served.errors.begin(), served.errors.end()}, "; "),
       sick == 0 ? "" : absl::StrFormat("%d units cannot be given now", sick),
       Refused(*status.node),
       IsUnderway(mode)
           ? absl::StrFormat("mode %s is not complete (%s): %s", mode.mode, mode.state, mode.reason)
           : ""});
}

NodeCondition Judge(const AgentStatus& status) {
  if (status.picture.at == absl::UnixEpoch()) {
    return Say(kUnknown, status.picture.error.empty() ? "Starting" : "ReadFailed",
               {status.picture.error.empty() ? "the node's devices have not been read yet"
                                             : status.picture.error});
  }
  if (!status.picture.error.empty()) {
    return Say(kUnknown, "ReadFailed",
               {"the node's devices cannot be read any more, what was offered stays",
                status.picture.error});
  }
  const ModeStatus& mode = status.mode;
  const bool stays = mode.target == mode.mode && mode.mode != "container";
  if (IsUnderway(mode) && !stays) return SayMode(mode);
  if (mode.mode == "container") {
    return Say(kFalse, "ModeContainer", {"mode container: devices are for containers"});
  }
  const Served served = LookAt(status);
  if (served.given > 0) return SayServing(status, served);
  // Where units only wait for the kubelet it is not the mode that is waited for.
  if (IsUnderway(mode) && served.healthy == 0) return SayMode(mode);
  return SayNothingGiven(status, served);
}

}  // namespace

NodeCondition PassthroughReady(const AgentStatus& status) {
  NodeCondition condition = Judge(status);
  // Of a mode that is complete it says what is amiss all the same: a label that is misspelt.
  const ModeStatus& mode = status.mode;
  if (mode.state != "ready" || mode.reason.empty()) return condition;
  condition.message = Printable(condition.message + "; " + mode.reason, kLongest);
  return condition;
}

bool MayPass(const NodeCondition& condition) {
  constexpr std::array<std::string_view, 5> kPassing = {"Starting", "Binding", "KubeletDown",
                                                        "NotRegistered", "ModeSwitching"};
  return std::ranges::count(kPassing, condition.reason) > 0;
}

NodeCondition PassthroughEnded(bool released) {
  return Say(kUnknown, "AgentStopped",
             {"vfio-agent has been stopped on this node",
              released ? "what nobody holds is given back to the driver that it came from, what "
                         "is held stays bound (bind.onExit: release)"
                       : "devices stay as they are"});
}

}  // namespace vfio_agent
