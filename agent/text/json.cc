#include "agent/text/json.h"

#include "absl/strings/str_format.h"
#include "iommu/plan/unsafe.h"

namespace vfio_agent {
namespace {

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string Text(std::string_view view) { return std::string(view); }
std::string Hex4(uint16_t value) { return absl::StrFormat("%04x", value); }

// Absent and unknown are told apart: null, and the word "unknown".
template <typename T>
Json FactToJson(const Fact<T>& fact) {
  if (fact.unknown()) return "unknown";
  return fact.known() ? Json(fact.value()) : Json(nullptr);
}

Json MemberToJson(const Member& member) {
  Json json = {
      {"address", member.address.ToString()}, {"vendor", Hex4(member.vendor)},
      {"device", Hex4(member.device)},        {"class", absl::StrFormat("%06x", member.class_code)},
      {"driver", OrNull(member.driver)},      {"role", Text(Name(member.role))},
      {"action", Text(Name(member.action))}};
  if (member.action == MemberAction::kBind) json["to"] = member.to;
  return json;
}

Json GroupToJson(const GroupPlan& group) {
  Json members = Json::array();
  for (const Member& member : group.members) members.push_back(MemberToJson(member));
  Json json = {{"group", OrNull(group.group)},
               {"verdict", Text(Name(group.verdict))},
               {"resource", group.resource.empty() ? Json(nullptr) : Json(group.resource)},
               {"members", members},
               {"refusals", RefusalsToJson(group.refusals)},
               {"warnings", RefusalsToJson(group.warnings)}};
  if (IsUnsafe(group)) json["unsafe"] = true;
  if (group.makes_mdevs) json["makes_mdevs"] = true;
  if (!group.vgpu_type.empty()) json["vgpu_type"] = group.vgpu_type;
  return json;
}

Json ResourceToJson(const Resource& resource) {
  Json units = Json::array();
  for (const Unit& unit : resource.units) {
    units.push_back({{"id", unit.id},
                     {"group", OrNull(unit.group)},
                     {"numa_node", OrNull(unit.numa_node)},
                     {"state", Text(Name(unit.state))}});
    if (!unit.groups.empty()) units.back()["groups"] = unit.groups;
    if (unit.addresses.size() > 1) {
      for (const PciAddress& address : unit.addresses) {
        units.back()["addresses"].push_back(address.ToString());
      }
    }
    for (const auto& [first, other] : unit.pairs) {
      units.back()["pairs"].push_back({first.ToString(), other.ToString()});
    }
    if (!unit.reason.empty()) units.back()["reason"] = unit.reason;
    if (IsUnsafe(unit.reason)) units.back()["unsafe"] = true;
    if (!unit.mdev_type.empty()) {
      units.back()["mdev_type"] = unit.mdev_type;
      units.back()["parent"] = unit.primary.ToString();
    }
    if (!unit.vgpu_type.empty()) units.back()["vgpu_type"] = unit.vgpu_type;
    for (const PodClaim& pod : unit.pods) {
      units.back()["pods"].push_back({{"namespace", pod.pod_namespace},
                                      {"pod", pod.pod},
                                      {"container", pod.container},
                                      {"resource", pod.resource}});
    }
  }
  Json json = {{"name", resource.name},
               {"vendor", Hex4(resource.vendor)},
               {"device", Hex4(resource.device)},
               {"units", units}};
  if (resource.serve == Serve::kDra) json["serve"] = Text(Name(resource.serve));
  if (!resource.partitions.empty()) json["partitions"] = resource.partitions;
  if (!resource.partitions_fault.empty()) json["partitions_fault"] = resource.partitions_fault;
  return json;
}

void AddActions(const GroupPlan& group, Json& list) {
  for (const Action& action : group.actions) {
    Json step = {{"step", list.size() + 1}, {"op", Text(OpName(action))}};
    if (const PciAddress* device = DeviceOf(action)) step["address"] = device->ToString();
    if (const auto* mdev = std::get_if<CreateMdev>(&action)) {
      step["address"] = mdev->parent.ToString();
    }
    step["group"] = OrNull(group.group);
    step["value"] = ValueOf(action);
    step["shell"] = ToShell(action);
    list.push_back(std::move(step));
  }
}

Json AcsToJson(const Fact<Acs>& acs) {
  if (!acs.known()) return acs.unknown() ? Json("unknown") : Json(nullptr);
  return {{"capability", absl::StrFormat("%04x", acs.value().capability)},
          {"control", absl::StrFormat("%04x", acs.value().control)}};
}

Json EgmToJson(const EgmShare& share) {
  Json gpus = Json::array();
  for (const PciAddress& gpu : share.gpus) gpus.push_back(gpu.ToString());
  return {{"node", share.node},
          {"gpus", gpus},
          {"resource", share.resource.empty() ? Json(nullptr) : Json(share.resource)},
          {"units", share.units},
          {"reason", share.why.empty() ? Json(nullptr) : Json(share.why)}};
}

}  // namespace

Json RefusalsToJson(const std::vector<Refusal>& refusals) {
  Json list = Json::array();
  for (const Refusal& refusal : refusals) list.push_back(RefusalToJson(refusal));
  return list;
}

Json AddressesToJson(const std::vector<PciAddress>& addresses) {
  Json list = Json::array();
  for (const PciAddress& address : addresses) list.push_back(address.ToString());
  return list;
}

Json RefusalToJson(const Refusal& refusal) {
  Json json = {{"code", Text(CodeName(refusal.code))}, {"group", OrNull(refusal.group)}};
  json["address"] = refusal.address ? Json(refusal.address->ToString()) : Json(nullptr);
  json["text"] = refusal.text;
  json["remedy"] = refusal.remedy;
  return json;
}

Json PlanToJson(const Plan& plan, bool all) {
  Json groups = Json::array(), resources = Json::array(), actions = Json::array();
  for (const GroupPlan& group : plan.groups) {
    if (group.verdict == Verdict::kUnselected && !all) continue;
    groups.push_back(GroupToJson(group));
    AddActions(group, actions);
  }
  for (const Resource& resource : plan.resources) resources.push_back(ResourceToJson(resource));
  Json json = {{"schema", "vfio-agent/plan/v1"},
               {"iommu",
                {{"state", Text(Name(plan.iommu.state))},
                 {"kind", Text(Name(plan.iommu.kind))},
                 {"acs_override", plan.acs_override}}},
               {"groups", groups},
               {"resources", resources},
               {"actions", actions},
               {"refusals", RefusalsToJson(plan.refusals)},
               {"warnings", RefusalsToJson(plan.warnings)}};
  for (const EgmShare& share : plan.egm) json["egm"].push_back(EgmToJson(share));
  return json;
}

Json DeviceToJson(const PciDevice& device, const std::string& model) {
  Json json = {{"address", device.address.ToString()},
               {"vendor", Hex4(device.vendor)},
               {"device", Hex4(device.device)},
               {"class", absl::StrFormat("%06x", device.class_code)},
               {"model", model.empty() ? Json(nullptr) : Json(model)},
               {"driver", OrNull(device.driver)},
               {"group", OrNull(device.group)},
               {"numa_node", OrNull(device.numa_node)},
               {"bridge", device.IsBridge()},
               {"parent", device.parent ? Json(device.parent->ToString()) : Json(nullptr)},
               {"root", device.root},
               {"acs", AcsToJson(device.config.acs)},
               {"flr", FactToJson(device.config.flr)},
               {"reset_method", FactToJson(device.reset_method)},
               {"power_state", FactToJson(device.power_state)},
               {"boot_vga", FactToJson(device.boot_vga)},
               {"physfn", device.physfn ? Json(device.physfn->ToString()) : Json(nullptr)},
               {"vfs", device.virtfns.size()},
               {"vfio_cdev", OrNull(device.vfio_cdev)},
               {"errors", device.errors}};
  Json bars = Json::array();
  for (const Bar& bar : device.bars) {
    bars.push_back({{"index", bar.index}, {"size_bytes", bar.size_bytes}});
  }
  json["bars"] = bars;
  return json;
}

std::string DumpJson(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace vfio_agent
