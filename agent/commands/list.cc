#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/commands.h"
#include "agent/exit_code.h"
#include "agent/json.h"
#include "agent/pci_class.h"
#include "agent/table.h"

namespace vfio_agent {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kNarrow = 100;  // columns of a table that is not wide

std::string GroupNumber(const std::optional<int>& group) {
  return group ? absl::StrFormat("%d", *group) : "-";
}

std::string Numa(const std::optional<int>& node) {
  return node ? absl::StrFormat("%d", *node) : "-";
}

// The model if it is known, else the class in lspci's words.
std::string DeviceWords(const Picture& picture, const PciDevice& device) {
  const std::string model = ModelOf(picture, device);
  return model.empty() ? std::string(ClassWords(device.class_code)) : model;
}

std::vector<std::string> MemberRow(const Picture& picture, const GroupPlan& group,
                                   const Member& member, bool wide) {
  const PciDevice& device = *FindDevice(picture.facts, member.address);
  std::string driver = member.driver.value_or("-");
  if (member.action == MemberAction::kBind) driver += " > " + member.to;
  std::vector<std::string> row = {GroupNumber(group.group),
                                  member.address.ToString(),
                                  absl::StrFormat("%04x:%04x", member.vendor, member.device),
                                  absl::StrFormat("%04x", device.Class16()),
                                  driver,
                                  std::string(Name(member.role)),
                                  std::string(Name(group.verdict)),
                                  DeviceWords(picture, device)};
  if (wide) {
    row.push_back(Numa(device.numa_node));
    row.push_back(device.parent ? device.parent->ToString() : device.root);
    row.push_back(group.resource);
  }
  return row;
}

// Grouped by IOMMU group; groups that nobody selected only on demand.
std::string DevicesText(const Picture& picture, bool all, bool wide) {
  Rows rows = {{"GROUP", "ADDRESS", "ID", "CLASS", "DRIVER", "ROLE", "VERDICT", "DEVICE"}};
  if (wide) rows.front().insert(rows.front().end(), {"NUMA", "BELOW", "RESOURCE"});
  for (const GroupPlan& group : picture.plan.groups) {
    if (group.verdict == Verdict::kUnselected && !all) continue;
    for (const Member& member : group.members) {
      rows.push_back(MemberRow(picture, group, member, wide));
    }
  }
  return FormatTable(std::move(rows), wide ? 0 : kNarrow);
}

std::string GroupsText(const Picture& picture, bool all) {
  Rows rows = {{"GROUP", "VERDICT", "ENDPOINTS", "BRIDGES", "RESOURCE", "WHY"}};
  for (const GroupPlan& group : picture.plan.groups) {
    if (group.verdict == Verdict::kUnselected && !all) continue;
    int bridges = 0;
    for (const Member& member : group.members) bridges += member.role == Role::kBridge ? 1 : 0;
    std::string why;
    for (const Refusal& refusal : group.refusals) {
      const std::string name(CodeName(refusal.code));
      if (why.find(name) == std::string::npos) why += (why.empty() ? "" : ",") + name;
    }
    rows.push_back({GroupNumber(group.group), std::string(Name(group.verdict)),
                    absl::StrFormat("%d", static_cast<int>(group.members.size()) - bridges),
                    absl::StrFormat("%d", bridges), group.resource.empty() ? "-" : group.resource,
                    why});
  }
  return FormatTable(std::move(rows), kNarrow);
}

std::string ResourcesText(const Picture& picture, bool wide) {
  Rows rows = {{"RESOURCE", "UNIT", "GROUP", "NUMA", "STATE", "WHO OR WHY"}};
  for (const Resource& resource : picture.plan.resources) {
    for (const Unit& unit : resource.units) {
      rows.push_back({resource.name, unit.id, GroupNumber(unit.group), Numa(unit.numa_node),
                      std::string(Name(unit.state)), WhoOrWhy(unit.pods, unit.reason, wide)});
    }
  }
  return FormatTable(std::move(rows), wide ? 0 : kNarrow);
}

Json DevicesJson(const Picture& picture, bool all) {
  Json devices = Json::array();
  for (const GroupPlan& group : picture.plan.groups) {
    if (group.verdict == Verdict::kUnselected && !all) continue;
    for (const Member& member : group.members) {
      const PciDevice& device = *FindDevice(picture.facts, member.address);
      devices.push_back(DeviceToJson(device, ModelOf(picture, device)));
      devices.back()["role"] = std::string(Name(member.role));
      devices.back()["verdict"] = std::string(Name(group.verdict));
    }
  }
  return {{"schema", "vfio-agent/devices/v1"}, {"devices", devices}};
}

// Groups and resources are parts of the plan's document, under their own schema.
Json PartJson(const Picture& picture, const std::string& part, bool all) {
  return {{"schema", absl::StrFormat("vfio-agent/%s/v1", part)},
          {part, PlanToJson(picture.plan, all).at(part)}};
}

void PrintHint(const Picture& picture, bool all) {
  for (const GroupPlan& group : picture.plan.groups) {
    if (all || group.verdict != Verdict::kUnselected) return;
  }
  PrintError("nothing on this node is selected; --all lists every device");
}

}  // namespace

int ListCommand(Session& session) {
  const Invocation& invocation = session.invocation();
  const std::string what = invocation.arguments.empty() ? "devices" : invocation.arguments.front();
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  if (IsDocument(invocation.output)) {
    PrintDocument(what == "devices" ? DevicesJson(*picture, invocation.all)
                                    : PartJson(*picture, what, invocation.all),
                  invocation.output);
    return kExitDone;
  }
  const bool wide = invocation.output == Output::kWide;
  if (what == "devices") std::cout << DevicesText(*picture, invocation.all, wide);
  if (what == "groups") std::cout << GroupsText(*picture, invocation.all);
  if (what == "resources") std::cout << ResourcesText(*picture, wide);
  PrintHint(*picture, invocation.all);
  return kExitDone;
}

}  // namespace vfio_agent
