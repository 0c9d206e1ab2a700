#include "absl/strings/str_format.h"
#include "agent/explain/explanation.h"

namespace vfio_agent {
namespace {

Json StepToJson(const PathStep& step) {
  return {{"address", step.address.ToString()},
          {"id", step.id},
          {"type", step.type},
          {"isolates", step.acs.known() ? Json(step.acs.Isolates()) : Json("unknown")},
          {"missing", AcsBits(step.acs.missing)},
          {"control", step.bits.empty() ? Json(nullptr) : Json(step.bits)},
          {"merges", step.merges},
          {"text", step.words}};
}

Json PathsToJson(const std::vector<DevicePath>& paths) {
  Json json = Json::object();
  for (const DevicePath& path : paths) {
    Json steps = Json::array();
    for (const PathStep& step : path.steps) steps.push_back(StepToJson(step));
    json[path.device.ToString()] = std::move(steps);
  }
  return json;
}

Json MemberToJson(const MemberNote& note) {
  Json json = {{"address", note.member.address.ToString()},
               {"id", absl::StrFormat("%04x:%04x", note.member.vendor, note.member.device)},
               {"model", note.model},
               {"sriov", note.sriov},
               {"role", std::string(Name(note.member.role))},
               {"driver", note.member.driver ? Json(*note.member.driver) : Json(nullptr)},
               {"to", note.member.to.empty() ? Json(nullptr) : Json(note.member.to)},
               {"blocks", note.blocks},
               {"uses", note.uses},
               {"errors", note.errors}};
  if (!note.holders.empty()) json["held_by"] = note.holders;
  return json;
}

Json MdevToJson(const MdevNote& note) {
  Json json = {{"uuid", note.mdev.uuid},
               {"group", note.mdev.group ? Json(*note.mdev.group) : Json(nullptr)},
               {"mdev_type", note.mdev.type},
               {"own", note.own},
               {"resource", note.resource.empty() ? Json(nullptr) : Json(note.resource)}};
  if (!note.holders.empty()) json["held_by"] = note.holders;
  return json;
}

Json RelocationToJson(const Relocation& relocation) {
  constexpr const char* kOutcomes[] = {"alone", "shared", "unknown"};
  Json ports = Json::array();
  for (const Move& move : relocation.moves) {
    ports.push_back({{"port", move.port.ToString()},
                     {"free", move.occupants.empty()},
                     {"occupants", AddressesToJson(move.occupants)},
                     {"outcome", kOutcomes[static_cast<size_t>(move.outcome)]},
                     {"with", AddressesToJson(move.with)}});
  }
  return {{"fixed", relocation.fixed.empty() ? Json(nullptr) : Json(relocation.fixed)},
          {"card", AddressesToJson(relocation.card)},
          {"ports", ports}};
}

Json IfSelectedToJson(const std::optional<IfSelected>& what_if) {
  if (!what_if) return nullptr;
  return {{"address", what_if->device.ToString()},
          {"physical", what_if->physical ? Json(what_if->physical->ToString()) : Json(nullptr)},
          {"verdict", std::string(Name(what_if->verdict))},
          {"refusals", RefusalsToJson(what_if->refusals)}};
}

}  // namespace

Json ExplanationToJson(const Explanation& explanation) {
  const GroupPlan& group = explanation.plan;
  Json members = Json::array(), commands = Json::array(), merges = Json::array();
  for (const MergeNote& merge : explanation.merges) merges.push_back(merge.text);
  for (const MemberNote& note : explanation.members) members.push_back(MemberToJson(note));
  for (const Action& action : group.actions) commands.push_back(ToShell(action));
  Json json = {{"group", group.group ? Json(*group.group) : Json(nullptr)},
               {"verdict", std::string(Name(group.verdict))},
               {"resource", group.resource.empty() ? Json(nullptr) : Json(group.resource)},
               {"members", members},
               {"merges", merges},
               {"unknown", AddressesToJson(explanation.unknown)},
               {"paths", PathsToJson(explanation.paths)},
               {"refusals", RefusalsToJson(group.refusals)},
               {"warnings", RefusalsToJson(group.warnings)},
               {"if_selected", IfSelectedToJson(explanation.if_selected)}};
  json["expected_members"] = explanation.expected
                                 ? AddressesToJson(*explanation.expected)
                                 : (explanation.without_iommu ? Json("unknown") : Json(nullptr));
  json["other_slots"] =
      explanation.relocation ? RelocationToJson(*explanation.relocation) : Json(nullptr);
  for (const MdevNote& note : explanation.mdevs) {
    json["mediated_devices"].push_back(MdevToJson(note));
  }
  json["units"] = Json::array();
  for (const UnitNote& note : explanation.units) {
    json["units"].push_back({{"id", note.id},
                             {"resource", note.resource},
                             {"state", note.state},
                             {"reason", note.who.empty() ? Json(nullptr) : Json(note.who)}});
  }
  if (explanation.by_claims) json["serve"] = std::string(Name(Serve::kDra));
  json["commands"] = commands;
  json["look"] = explanation.look;
  if (!explanation.memory.empty()) json["memory"] = explanation.memory;
  return json;
}

}  // namespace vfio_agent
