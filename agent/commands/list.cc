#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/dra/foretell.h"
#include "agent/exit_code.h"
#include "agent/listing/held.h"
#include "agent/listing/tables.h"
#include "agent/listing/told_mode.h"
#include "agent/listing/watch.h"
#include "agent/text/json.h"
#include "iommu/plan/unsafe.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kPause = absl::Seconds(2);

void AddDevices(const Picture& picture, const GroupPlan& group, Json& devices) {
  for (const Member& member : group.members) {
    const PciDevice& device = *FindDevice(picture.facts, member.address);
    devices.push_back(DeviceToJson(device, ModelOf(picture, device)));
    devices.back()["role"] = std::string(Name(member.role));
    devices.back()["verdict"] = std::string(Name(group.verdict));
    const std::vector<std::string> holders = WhoHas(picture, member.address);
    if (!holders.empty()) devices.back()["held_by"] = holders;
    if (IsUnsafe(group)) devices.back()["unsafe"] = true;
  }
}

Json DevicesJson(const Picture& picture, bool all) {
  Json devices = Json::array();
  for (const GroupPlan& group : picture.plan.groups) {
    if (all || group.verdict != Verdict::kUnselected) AddDevices(picture, group, devices);
  }
  if (all) {
    for (const GroupPlan& lone : PlansOfUngrouped(picture)) AddDevices(picture, lone, devices);
  }
  return {{"schema", "vfio-agent/devices/v1"}, {"devices", devices}};
}

// Groups and resources are parts of the plan's document, under their own schema.
Json PartJson(const Picture& picture, const std::string& part, bool all) {
  return {{"schema", absl::StrFormat("vfio-agent/%s/v1", part)},
          {part, PlanToJson(picture.plan, all).at(part)}};
}

std::string Text(const Picture& picture, const std::string& what, const Invocation& invocation) {
  const ListWish wish = {.all = invocation.all, .wide = invocation.output == Output::kWide};
  const TableStyle style = {
      .width = wish.wide ? 0 : TableWidth(),
      .spare = SpareColumns(),
      .paint = UsesColour(invocation.colour, STDOUT_FILENO) ? StateStyle : nullptr};
  if (what == "devices") return FormatTable(DeviceRows(picture, wish), style);
  if (what == "groups") return FormatTable(GroupRows(picture, wish), style);
  if (what == "slices") return FormatTable(DraDeviceRows(ForetellDraDevices(picture)), style);
  return FormatTable(ResourceRows(picture, wish), style);
}

Json Document(const Picture& picture, const std::string& what, const Session& session) {
  const bool all = session.invocation().all;
  if (what == "devices") return DevicesJson(picture, all);
  if (what != "slices") return PartJson(picture, what, all);
  return SlicesDocument(PoolOf(session.settings()), ForetellDraDevices(picture));
}

std::string Answer(const Picture& picture, const Session& session) {
  const Invocation& invocation = session.invocation();
  const std::string what = invocation.arguments.empty() ? "devices" : invocation.arguments.front();
  if (!IsDocument(invocation.output)) return Text(picture, what, invocation);
  return DocumentText(Document(picture, what, session), invocation.output);
}

bool IsOf(const Invocation& invocation, std::string_view what) {
  return !invocation.arguments.empty() && invocation.arguments.front() == what;
}

void PrintHint(const Picture& picture, const Invocation& invocation) {
  if (IsOf(invocation, "slices") && ForetellDraDevices(picture).empty()) {
    PrintError(
        "nothing is served by DRA: what entries of `resources`, `mdev` or `vgpu` with `serve: dra` "
        "give away would stand here");
  }
  // They are no units yet, so that no table has them.
  for (const std::string& sentence : TellVfsToMake(picture.plan)) PrintError(sentence);
  for (const std::string& sentence : TellHeldWithoutOffer(picture)) PrintError(sentence);
  if (invocation.all) {
    if (picture.facts.groups.empty()) {
      PrintError("this node has no IOMMU groups; `vfio-agent doctor` tells why");
    }
    return;
  }
  const auto selected = [](const GroupPlan& group) {
    return group.verdict != Verdict::kUnselected;
  };
  if (std::ranges::any_of(picture.plan.groups, selected)) return;
  PrintError("nothing on this node is selected; --all lists every device");
}

int WatchList(Session& session) {
  return KeepWatching(session.tree(),
                      {.form = WatchFormFor(session.invocation().output),
                       .pause = kPause,
                       .answer = [&session]() -> std::string {
                         std::vector<std::string> notes;  // a list without --watch tells
                         const std::optional<ModeStatus> told = ReadToldMode(session);
                         UseToldMode(told, session);
                         absl::StatusOr<Picture> picture = session.Take(notes);
                         if (!picture.ok()) return ForTerminal(Message(picture.status()) + "\n");
                         WithholdAsTold(told, session.config().mode, picture->plan);
                         return Answer(*picture, session);
                       }});
}

}  // namespace

int ListCommand(Session& session) {
  const Invocation& invocation = session.invocation();
  if (invocation.watch) return WatchList(session);
  const std::optional<ModeStatus> told = ReadToldMode(session);
  UseToldMode(told, session);
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  WithholdAsTold(told, session.config().mode, picture->plan);
  std::cout << Answer(*picture, session);
  if (!IsDocument(invocation.output)) PrintHint(*picture, invocation);
  return kExitDone;
}

}  // namespace vfio_agent
