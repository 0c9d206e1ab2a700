#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/plan/planning.h"
#include "iommu/tenancy/rival.h"
#include "sysfs/paths.h"

namespace vfio_agent {
namespace {

struct UseRow {
  UseKind kind;
  Code code;
};
constexpr std::array<UseRow, 5> kUses = {{{UseKind::kNetwork, Code::kInUseNetwork},
                                          {UseKind::kStorage, Code::kInUseStorage},
                                          {UseKind::kDisplay, Code::kInUseDisplay},
                                          {UseKind::kProcess, Code::kInUseHolder},
                                          {UseKind::kManager, Code::kForeignManager}}};

Code CodeOf(UseKind kind) { return std::ranges::find(kUses, kind, &UseRow::kind)->code; }

// One guard: looks at member `i`, which binding the group would move.
using Guard = void (*)(const Context&, Draft&, size_t i);

std::vector<std::string> MdevsOf(const Context& context, const PciDevice& device) {
  std::vector<std::string> uuids;
  for (const MdevInstance& mdev : context.facts.mdev.instances) {
    if (mdev.parent == device.address) uuids.push_back(mdev.uuid);
  }
  return uuids;
}

void GuardUses(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  const auto& uses = context.custody.inquiry->use.devices;
  const auto found = uses.find(device.address);
  if (found == uses.end()) return;
  for (const Use& use : found->second) {
    // RefuseMdevs tells of those, whom nothing overrules.
    if (use.kind == UseKind::kManager && WillBind(draft, i) && !MdevsOf(context, device).empty()) {
      continue;
    }
    RefuseUnlessOverruled(context, draft, CodeOf(use.kind), device,
                          absl::StrFormat("%s %s", Spell(device), use.text), use.remedy);
  }
}

void WarnUnseenHolders(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!device.driver || context.custody.inquiry->use.processes_known) return;
  draft.plan.warnings.push_back(
      {.code = Code::kInUseHolder,
       .group = draft.plan.group,
       .address = device.address,
       .text = absl::StrFormat("which processes have %s open is not known: not all of them can be "
                               "seen from here",
                               Spell(device)),
       .remedy = "run the agent with hostPID, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"});
}

void GuardOverride(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  const auto& overrides = context.custody.inquiry->overrides;
  const auto read = overrides.find(device.address);
  if (read != overrides.end() && read->second.unknown()) {
    const bool stuck = read->second.error() == ETIMEDOUT;
    return Refuse(draft, stuck ? Code::kUnbindStuck : Code::kOverrideUnsupported, &device,
                  absl::StrFormat("the driver_override of %s cannot be read%s", Spell(device),
                                  stuck ? ": the kernel is inside another operation on it" : ""));
  }
  const std::string foreign = ForeignOverride(context.custody, device.address);
  if (foreign.empty()) return;
  RefuseUnlessOverruled(
      context, draft, Code::kForeignManager, device,
      absl::StrFormat("somebody has set the driver_override of %s to '%s'", Spell(device), foreign),
      absl::StrFormat("driverctl unset-override %s, or echo > /%s", device.address.ToString(),
                      OverridePath(device.address)));
}

// A vfio driver's name on a device without a driver that no record claims: somebody was cut off
// here, or keeps the device for something.
void WarnLeftOverride(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  const auto& overrides = context.custody.inquiry->overrides;
  const auto read = overrides.find(device.address);
  const auto record = context.custody.records.find(device.address);
  if (device.driver || read == overrides.end() || !IsVfioDriver(read->second.value()) ||
      (record != context.custody.records.end() && record->second.this_boot)) {
    return;
  }
  draft.plan.warnings.push_back(
      {.code = Code::kForeignManager,
       .group = draft.plan.group,
       .address = device.address,
       .text = absl::StrFormat("%s has the driver_override '%s', which is not this agent's",
                               Spell(device), read->second.value()),
       .remedy =
           "nothing to do if nobody else manages the device; `release` takes the override away"});
}

// Calls `visit(kind, why)` for each other manager on this node that manages devices like `device`:
// "… has another manager: NVIDIA's vfio-manager (pod gpu-operator/nvidia-vfio-manager-x7k2p) …".
template <typename Visit>
void ForEachRival(const Context& context, const PciDevice& device, bool vgpus, const Visit& visit) {
  if (!context.custody.tenancy) return;
  for (const std::string& pod : context.custody.tenancy->claims.rivals) {
    const RivalKind* const kind = FindRivalKind(pod.substr(pod.find('/') + 1));
    if (kind == nullptr || !Manages(*kind, device, vgpus)) continue;
    visit(*kind, Refusal{.code = Code::kForeignManager,
                         .group = device.group,
                         .address = device.address,
                         .text = absl::StrFormat("%s has another manager: %s (pod %s) %s",
                                                 Spell(device), kind->what, pod, kind->does),
                         .remedy = std::string(kind->remedy)});
  }
}

void GuardRivals(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  ForEachRival(context, device, false, [&](const RivalKind& kind, Refusal why) {
    if (kind.warns_only) return draft.plan.warnings.push_back(std::move(why));
    RefuseUnlessOverruled(context, draft, why.code, device, std::move(why.text),
                          std::move(why.remedy));
  });
}

// What is bound already stays so and is served: a pod may have it.
void WarnRivals(const Context& context, Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.plan.members[i].role != Role::kPrimary) continue;
    ForEachRival(context, *draft.devices[i], false, [&](const RivalKind&, Refusal why) {
      draft.plan.warnings.push_back(std::move(why));
    });
  }
}

constexpr std::array<Guard, 5> kGuards = {GuardUses, WarnUnseenHolders, GuardOverride,
                                          WarnLeftOverride, GuardRivals};

void RefuseStuck(const Context& context, Draft& draft) {
  const auto stuck = context.custody.underway.stuck.find(*draft.plan.group);
  if (stuck == context.custody.underway.stuck.end()) return;
  const StuckWrite& write = stuck->second;
  const std::string where = write.where.empty() ? "" : " (in " + write.where + ")";
  Refuse(draft, Code::kUnbindStuck, FindDevice(context.facts, write.device),
         absl::StrFormat("the kernel has not returned from `%s`%s", write.command, where));
}

void RefuseElsewhere(const Context& context, Draft& draft) {
  if (!context.custody.underway.elsewhere.contains(*draft.plan.group)) return;
  Refuse(
      draft, Code::kForeignManager, nullptr,
      absl::StrFormat("another vfio-agent process is still at work on group %d", *draft.plan.group),
      "wait for it to end, then try again");
}

// They would go with the driver that has made them, or keep it from letting go.
void RefuseMdevs(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  const std::vector<std::string> uuids = MdevsOf(context, device);
  if (uuids.empty()) return;
  std::string remedy = "vfio-agent release " + device.address.ToString();
  if (!std::ranges::all_of(uuids, HasOwnMark)) {
    remedy = absl::StrFormat(
        "`%s` removes this agent's; of others': mdevctl stop, or echo 1 > "
        "/sys/bus/mdev/devices/%s/remove",
        remedy, *std::ranges::find_if_not(uuids, HasOwnMark));
  }
  Refuse(draft, Code::kHeld, &device,
         absl::StrFormat("%s has mediated devices, which need its driver: %s", Spell(device),
                         absl::StrJoin(uuids, " ")),
         std::move(remedy));
}

void RefuseHeld(const Context& context, Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (WillBind(draft, i)) RefuseMdevs(context, draft, i);
  }
  const std::string users = WhyHeld(context.custody, context.facts, *draft.plan.group);
  if (users.empty()) return;
  Refuse(draft, Code::kHeld, nullptr,
         absl::StrFormat("group %d is in use by %s: nothing is written to it", *draft.plan.group,
                         users));
}

std::string Join(const std::vector<PciAddress>& addresses) {
  std::vector<std::string> texts;
  for (const PciAddress& address : addresses) texts.push_back(address.ToString());
  return absl::StrJoin(texts, " ");
}

// The kernel groups differently after an update, another slot's card or a rescan.
void WarnGroupChanged(const Context& context, Draft& draft) {
  std::vector<PciAddress> now;
  for (const PciDevice* device : draft.devices) {
    if (!device->IsBridge()) now.push_back(device->address);
  }
  for (const PciAddress& address : now) {
    const auto record = context.custody.records.find(address);
    if (record == context.custody.records.end() || record->second.members == now) continue;
    draft.plan.warnings.push_back(
        {.code = Code::kGroupChanged,
         .group = draft.plan.group,
         .address = address,
         .text = absl::StrFormat("the group of %s was %d {%s} when the device was taken, and is %d "
                                 "{%s} now",
                                 address.ToString(), record->second.group,
                                 Join(record->second.members), *draft.plan.group, Join(now)),
         .remedy = std::string(DefaultRemedy(Code::kGroupChanged))});
    return;  // once for the group
  }
}

// A physical function keeps its driver, but what the host does with it ends or suffers when VFs
// take their share of it: it must be as free as if it were taken.
void GuardPhysical(const Context& context, Draft& draft) {
  bool makes = false;
  for (size_t i = 0; i < draft.devices.size(); ++i) makes = makes || MakesVfs(draft, i);
  if (!makes) return;
  RefuseStuck(context, draft);
  RefuseElsewhere(context, draft);
  if (!context.custody.inquiry) return;
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (!MakesVfs(draft, i)) continue;
    GuardUses(context, draft, i);
    WarnUnseenHolders(context, draft, i);
    GuardRivals(context, draft, i);
  }
}

bool Moves(const Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (WillBind(draft, i)) return true;
  }
  return false;
}

}  // namespace

void ApplyGuards(const Context& context, Draft& draft) {
  if (!draft.plan.group) return;
  if (!draft.Selected()) return GuardPhysical(context, draft);
  WarnGroupChanged(context, draft);
  RefuseStuck(context, draft);
  RefuseElsewhere(context, draft);
  const bool moves = Moves(draft);
  if (!moves) WarnRivals(context, draft);
  if (!context.custody.inquiry) return;
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (!WillBind(draft, i)) continue;
    for (const Guard guard : kGuards) guard(context, draft, i);
  }
  if (moves) RefuseHeld(context, draft);
}

VgpuRivals RivalsOf(const Context& context, const PciDevice& parent, bool has_some) {
  VgpuRivals rivals;
  const bool overruled = context.policy.guard_override.contains(parent.address);
  ForEachRival(context, parent, true, [&](const RivalKind& kind, Refusal why) {
    const bool hinders = !kind.warns_only && !overruled;
    if (hinders && !rivals.hinders) rivals.hinders = why;
    if (hinders && !has_some) return;
    why.overruled = overruled && !kind.warns_only;
    if (why.overruled) why.text += "; overruled by guard.override";
    rivals.warnings.push_back(std::move(why));
  });
  return rivals;
}

}  // namespace vfio_agent
