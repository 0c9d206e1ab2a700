#include "agent/listing/tables.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/commands.h"
#include "agent/text/pci_class.h"
#include "iommu/plan/unsafe.h"

namespace vfio_agent {
namespace {

std::string OrDash(const std::optional<int>& number) {
  return number ? absl::StrFormat("%d", *number) : "-";
}

// The model if it is known, else the class in lspci's words.
std::string DeviceWords(const Picture& picture, const PciDevice& device) {
  const std::string model = ModelOf(picture, device);
  return model.empty() ? std::string(ClassWords(device.class_code)) : model;
}

std::vector<const GroupPlan*> Sorted(const Picture& picture, bool all) {
  std::vector<const GroupPlan*> groups;
  for (const GroupPlan& group : picture.plan.groups) {
    if (all || group.verdict != Verdict::kUnselected) groups.push_back(&group);
  }
  std::ranges::stable_sort(groups, [](const GroupPlan* a, const GroupPlan* b) {
    return a->group && b->group ? *a->group < *b->group : a->group.has_value() && !b->group;
  });
  return groups;
}

bool IsPlanned(const Plan& plan, const PciAddress& address) {
  return std::ranges::any_of(plan.groups, [&address](const GroupPlan& group) {
    return std::ranges::count(group.members, address, &Member::address) > 0;
  });
}

std::vector<Member> SortedMembers(const GroupPlan& group) {
  std::vector<Member> members = group.members;
  std::ranges::stable_sort(members, {}, &Member::address);
  return members;
}

std::vector<std::string> MemberRow(const Picture& picture, const GroupPlan& group,
                                   const Member& member, bool wide) {
  const PciDevice& device = *FindDevice(picture.facts, member.address);
  std::string driver = member.driver.value_or("-");
  if (member.action == MemberAction::kBind) driver += " > " + member.to;
  std::vector<std::string> row = {OrDash(group.group),
                                  member.address.ToString(),
                                  absl::StrFormat("%04x:%04x", member.vendor, member.device),
                                  absl::StrFormat("%04x", device.Class16()),
                                  driver,
                                  std::string(Name(member.role)),
                                  VerdictCell(group.verdict, IsUnsafe(group)),
                                  DeviceWords(picture, device)};
  if (wide) {
    row.push_back(OrDash(device.numa_node));
    row.push_back(device.parent ? device.parent->ToString() : device.root);
    row.push_back(group.resource);
  }
  return row;
}

std::vector<std::string> BridgeRow(const GroupPlan& group, long bridges) {
  return {OrDash(group.group),
          absl::StrFormat("+%d bridge%s", bridges, bridges == 1 ? "" : "s"),
          "",
          "",
          "",
          std::string(Name(Role::kBridge)),
          VerdictCell(group.verdict, IsUnsafe(group)),
          ""};
}

long CountBridges(const GroupPlan& group) {
  return std::ranges::count(group.members, Role::kBridge, &Member::role);
}

// Each code once.
std::string Codes(const GroupPlan& group) {
  std::vector<std::string> codes;
  for (const Refusal& refusal : group.refusals) {
    const std::string code(CodeName(refusal.code));
    if (std::ranges::count(codes, code) == 0) codes.push_back(code);
  }
  return absl::StrJoin(codes, ",");
}

}  // namespace

std::vector<GroupPlan> PlansOfUngrouped(const Picture& picture) {
  std::vector<GroupPlan> plans;
  for (const PciDevice& device : picture.facts.devices) {
    if (device.group || IsPlanned(picture.plan, device.address)) continue;
    const Role role = device.IsBridge() ? Role::kBridge : Role::kForeign;
    plans.push_back({.members = {{.address = device.address,
                                  .vendor = device.vendor,
                                  .device = device.device,
                                  .class_code = device.class_code,
                                  .driver = device.driver,
                                  .role = role}}});
  }
  return plans;
}

TableRows DeviceRows(const Picture& picture, const ListWish& wish) {
  TableRows rows = {{"GROUP", "ADDRESS", "ID", "CLASS", "DRIVER", "ROLE", "VERDICT", "DEVICE"}};
  if (wish.wide) rows.front().insert(rows.front().end(), {"NUMA", "BELOW", "RESOURCE"});
  const bool fold = !wish.all && !wish.wide;
  for (const GroupPlan* group : Sorted(picture, wish.all)) {
    for (const Member& member : SortedMembers(*group)) {
      if (fold && member.role == Role::kBridge) continue;
      rows.push_back(MemberRow(picture, *group, member, wish.wide));
    }
    const long bridges = CountBridges(*group);
    if (fold && bridges > 0) rows.push_back(BridgeRow(*group, bridges));
  }
  if (!wish.all) return rows;
  for (const GroupPlan& lone : PlansOfUngrouped(picture)) {
    rows.push_back(MemberRow(picture, lone, lone.members.front(), wish.wide));
  }
  return rows;
}

TableRows GroupRows(const Picture& picture, const ListWish& wish) {
  TableRows rows = {{"GROUP", "VERDICT", "ENDPOINTS", "BRIDGES", "RESOURCE", "WHY"}};
  for (const GroupPlan* group : Sorted(picture, wish.all)) {
    const long bridges = CountBridges(*group);
    const long endpoints = static_cast<long>(group->members.size()) - bridges;
    rows.push_back({OrDash(group->group), VerdictCell(group->verdict, IsUnsafe(*group)),
                    absl::StrFormat("%d", endpoints), absl::StrFormat("%d", bridges),
                    group->resource.empty() ? "-" : group->resource, Codes(*group)});
  }
  return rows;
}

std::string GroupsCell(const std::optional<int>& group, const std::vector<int>& groups, bool wide) {
  if (groups.empty()) return OrDash(group);
  if (wide) return absl::StrJoin(groups, " ");
  return absl::StrFormat("%d +%d", group.value_or(groups.front()), groups.size() - 1);
}

std::string PartsText(const Unit& unit) {
  if (unit.addresses.empty()) return unit.id;  // a mediated device
  return absl::StrJoin(unit.addresses, " ", [](std::string* out, const PciAddress& address) {
    out->append(address.ToString());
  });
}

TableRows ResourceRows(const Picture& picture, const ListWish& wish) {
  TableRows rows = {{"RESOURCE", "UNIT", "GROUP", "NUMA", "STATE", "WHO OR WHY"}};
  const std::vector<Resource>& resources = picture.plan.resources;
  const bool ways = std::ranges::count(resources, Serve::kDra, &Resource::serve) > 0;
  if (ways) rows.front().insert(rows.front().begin() + 1, "SERVED BY");
  for (const Resource& resource : resources) {
    for (const Unit& unit : resource.units) {
      rows.push_back({resource.name, wish.wide ? PartsText(unit) : unit.id,
                      GroupsCell(unit.group, unit.groups, wish.wide), OrDash(unit.numa_node),
                      std::string(Name(unit.state)), WhoOrWhy(unit.pods, unit.reason, wish.wide)});
      if (ways) rows.back().insert(rows.back().begin() + 1, std::string(Name(resource.serve)));
    }
  }
  return rows;
}

std::vector<std::string_view> SpareColumns() {
  return {"CLASS", "BRIDGES", "NUMA", "ROLE", "ID", "ENDPOINTS"};
}

Style StateStyle(std::string_view heading, std::string_view cell) {
  struct Row {
    std::string_view word;
    Style style;
  };
  constexpr std::array<Row, 8> kStyles = {{{"bound", Style::kGood},
                                           {"ready", Style::kGood},
                                           {"bind", Style::kChange},
                                           {"to-bind", Style::kChange},
                                           {"withheld", Style::kChange},
                                           {"refused", Style::kBad},
                                           {"unhealthy", Style::kBad},
                                           {"unselected", Style::kDim}}};
  if (heading != "VERDICT" && heading != "STATE") return Style::kPlain;
  if (cell.ends_with(" UNSAFE")) return Style::kBad;
  const auto found = std::ranges::find(kStyles, cell, &Row::word);
  return found == kStyles.end() ? Style::kPlain : found->style;
}

}  // namespace vfio_agent
