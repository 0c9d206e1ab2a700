#include <algorithm>
#include <iostream>

#include "agent/commands.h"
#include "agent/exit_code.h"
#include "agent/explanation.h"
#include "agent/json.h"
#include "iommu/selector.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

Json PathJson(const Picture& picture, const PciDevice& device) {
  Json path = Json::array();
  const auto add = [&path](const PciDevice& port) {
    const AcsState acs = CheckAcs(port);
    path.push_back({{"address", port.address.ToString()},
                    {"isolates", acs.known() ? Json(acs.Isolates()) : Json("unknown")},
                    {"missing", AcsBits(acs.missing)},
                    {"text", Describe(acs)}});
  };
  for (const PciAddress& address : device.path) {
    if (const PciDevice* port = FindDevice(picture.facts, address)) add(*port);
  }
  add(device);
  return path;
}

Json GroupJson(const Picture& picture, const Grouping& grouping, const GroupPlan& group) {
  Json merges = Json::array(), paths = Json::object(), refusals = Json::array(),
       warnings = Json::array();
  for (const Member& member : group.members) {
    paths[member.address.ToString()] =
        PathJson(picture, *FindDevice(picture.facts, member.address));
    for (const Merge& merge : grouping.merges) {
      if (merge.device == member.address) merges.push_back(ExplainMerge(picture, merge));
    }
  }
  for (const Refusal& refusal : group.refusals) refusals.push_back(RefusalToJson(refusal));
  for (const Refusal& warning : group.warnings) warnings.push_back(RefusalToJson(warning));
  return {{"group", group.group ? Json(*group.group) : Json(nullptr)},
          {"verdict", std::string(Name(group.verdict))},
          {"merges", merges},
          {"paths", paths},
          {"refusals", refusals},
          {"warnings", warnings}};
}

// A selected device without a group has a plan of its own; another one has none to explain.
bool NeedsNote(const Picture& picture, const Target& target) {
  const auto device = std::ranges::find_if(
      picture.facts.devices, [&target](const PciDevice& d) { return Matches(target.selector, d); });
  return device != picture.facts.devices.end() && !device->group;
}

void Print(const Session& session, const Picture& picture,
           const std::vector<const GroupPlan*>& groups) {
  const Grouping grouping = ComputeGrouping(picture.facts);
  const Output output = session.invocation().output;
  if (!IsDocument(output)) {
    for (const GroupPlan* group : groups) std::cout << ExplainGroup(picture, grouping, *group);
    return;
  }
  Json list = Json::array();
  for (const GroupPlan* group : groups) list.push_back(GroupJson(picture, grouping, *group));
  const Json document = {{"schema", "vfio-agent/explain/v1"}, {"groups", list}};
  PrintDocument(document, output);
}

}  // namespace

int ExplainCommand(Session& session) {
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  const auto groups = FindTargets(*picture, session.invocation().arguments);
  if (!groups.ok()) {
    const std::string& text = session.invocation().arguments.front();
    const absl::StatusOr<Target> target = ParseTarget(text, picture->facts.devices);
    if (target.ok() && target->resource.empty() && NeedsNote(*picture, *target)) {
      std::cout << text << ": has no IOMMU group and is not selected by the configuration\n";
      return kExitDone;
    }
    PrintError(Message(groups.status()));
    return kExitUsage;
  }
  Print(session, *picture, *groups);
  const bool refused = std::ranges::any_of(
      *groups, [](const GroupPlan* g) { return g->verdict == Verdict::kRefused; });
  return session.invocation().exit_code && refused ? kExitRefused : kExitDone;
}

}  // namespace vfio_agent
