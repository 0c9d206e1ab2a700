#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "iommu/plan/map_fails.h"
#include "iommu/plan/planning.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

// One rule: looks at member `i` of the draft (which is no bridge) and may refuse or warn.
using MemberRule = void (*)(const Context&, Draft&, size_t i);

bool IsPrimary(const Draft& draft, size_t i) {
  return draft.plan.members[i].role == Role::kPrimary;
}

std::string WhyUnknown(const IommuFacts& iommu) {
  if (iommu.state != IommuState::kUnknown || iommu.evidence.empty()) return "";
  return ", and whether an IOMMU is on is not known: " + iommu.evidence.back();
}

void RequireGroup(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (device.group) return;
  const IommuFacts& iommu = context.facts.iommu;
  if (draft.rule->noiommu && iommu.unsafe_noiommu) {
    return Refuse(
        draft, Code::kNoIommuGroup, &device,
        absl::StrFormat("%s has no group: in noiommu mode it gets one when vfio-pci takes "
                        "it, and this program binds by groups",
                        Spell(device)),
        absl::StrFormat("driverctl set-override %s vfio-pci; it is served from then on",
                        device.address.ToString()));
  }
  if (iommu.state == IommuState::kOff) {
    const std::string why = iommu.evidence.empty() ? "" : ": " + iommu.evidence.back();
    Refuse(draft, Code::kIommuOff, &device,
           absl::StrFormat("no IOMMU is on, so %s cannot be given away%s", Spell(device), why),
           IommuRemedy(iommu));
  }
  Refuse(draft, Code::kNoIommuGroup, &device,
         absl::StrFormat("%s has no IOMMU group%s", Spell(device), WhyUnknown(iommu)),
         NoGroupRemedy(iommu, device));
}

void RefuseNoiommu(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!IsPrimary(draft, i) || !device.group) return;
  if (!context.facts.groups.at(*device.group).noiommu) return;
  const std::string text = absl::StrFormat("group %d of %s is of noiommu mode: nothing isolates it",
                                           *device.group, Spell(device));
  if (!draft.rule->noiommu) return Refuse(draft, Code::kNoiommu, &device, text);
  draft.plan.warnings.push_back(
      {.code = Code::kNoiommu,
       .group = draft.plan.group,
       .address = device.address,
       .text = "UNSAFE: " + text +
               ", who has it reaches all of the host's memory; allowed by resources[].noiommu",
       .remedy = "boot with a real IOMMU and take `noiommu: true` out"});
}

void RefuseForeign(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (draft.plan.members[i].role != Role::kForeign || !device.driver || IsOnVfio(device) ||
      IsHarmlessDriver(*device.driver)) {
    return;
  }
  Refuse(draft, Code::kForeignMember, &device,
         absl::StrFormat("%s shares group %d and a host driver holds it", Spell(device),
                         draft.plan.group.value_or(-1)),
         ForeignRemedy(draft, i));
}

void RefuseVf(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!IsPrimary(draft, i) || !device.IsVf() || draft.rules[i]->sriov) return;
  Refuse(draft, Code::kVfNeedsOptIn, &device,
         absl::StrFormat("%s is a virtual function of %s, not a whole device", Spell(device),
                         device.physfn->ToString()));
}

// Also of a device that is bound already: its VFs, and whoever has them, would hang on a guest.
void RefusePfWithVfs(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (draft.plan.members[i].role == Role::kForeign || device.virtfns.empty()) return;
  Refuse(
      draft, Code::kPfHasVfs, &device,
      absl::StrFormat("%s has %d virtual functions enabled%s", Spell(device), device.virtfns.size(),
                      WillBind(draft, i) ? "; vfio-pci does not take it" : ""),
      absl::StrFormat("echo 0 > /sys/bus/pci/devices/%s/sriov_numvfs, once no guest uses a VF",
                      device.address.ToString()));
}

void RefuseBootDisplay(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!WillBind(draft, i) || !device.boot_vga.is(true)) return;
  RefuseUnlessOverruled(context, draft, Code::kBootDisplay, device,
                        absl::StrFormat("%s is the boot display (boot_vga)", Spell(device)));
}

// vfio-pci's own list (vfio_pci_dev_in_denylist() in drivers/vfio/pci/vfio_pci.c): Intel
// QuickAssist devices and VFs that let a guest bring the host down.
constexpr std::array<uint16_t, 6> kDenied = {0x19e2, 0x19e3, 0x37c8, 0x37c9, 0x0435, 0x0443};

void RefuseDenied(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!WillBind(draft, i) || device.vendor != 0x8086 || context.facts.iommu.denylist_disabled ||
      !std::ranges::count(kDenied, device.device)) {
    return;
  }
  Refuse(draft, Code::kProbeRefused, &device,
         absl::StrFormat("%s is on vfio-pci's denylist: the kernel refuses it", Spell(device)),
         "load vfio-pci with disable_denylist=1 if you accept that a guest can crash the host");
}

void RefuseUnknownDriver(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!WillBind(draft, i) || !device.driver || device.driver->find('?') == std::string::npos) {
    return;
  }
  Refuse(draft, Code::kDriverChanged, &device,
         absl::StrFormat("the driver that has %s cannot be told, so it cannot be taken from it",
                         Spell(device)),
         absl::StrFormat("see what it is: `ls -l /sys/bus/pci/devices/%s/driver`",
                         device.address.ToString()));
}

// POWR-03: also of a device that is bound already, for its guest would not start.
void RefuseFrameBuffer(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  const auto held = context.facts.frame_buffers.find(device.address);
  if (draft.plan.members[i].role == Role::kForeign || held == context.facts.frame_buffers.end()) {
    return;
  }
  RefuseUnlessOverruled(context, draft, Code::kInUseDisplay, device,
                        absl::StrFormat("%s %s", Spell(device), held->second.text),
                        held->second.remedy);
}

void RequireOverride(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!WillBind(draft, i) || device.has_override) return;
  Refuse(draft, Code::kOverrideUnsupported, &device,
         absl::StrFormat("%s has no driver_override", Spell(device)));
}

void RefuseReserved(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!IsPrimary(draft, i) || !device.group) return;
  if (!context.facts.groups.at(*device.group).direct_reserved) return;
  Refuse(draft, Code::kRmrrDirect, &device,
         absl::StrFormat("group %d of %s has a region that the firmware reserves (direct): the "
                         "kernel refuses it to guests",
                         *device.group, Spell(device)));
}

void RefuseDead(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (draft.plan.members[i].role == Role::kForeign || !device.config.all_ones) return;
  if (device.power_state.is("D3cold")) {
    Refuse(draft, Code::kPowerD3cold, &device,
           absl::StrFormat("%s is in D3cold and does not wake", Spell(device)));
  }
  Refuse(draft, Code::kConfigUnreadable, &device,
         absl::StrFormat("the config space of %s reads all ones", Spell(device)));
}

void RefuseWideAddress(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!IsPrimary(draft, i) || device.address.domain <= 0xffff) return;
  Refuse(draft, Code::kAddressTooWide, &device,
         absl::StrFormat("the domain of %s has more than four digits", Spell(device)));
}

void WarnReset(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (!IsPrimary(draft, i) || !device.reset_method.known()) return;
  if (device.reset_method.value().empty()) {
    return Refuse(draft, Code::kNoReset, &device,
                  absl::StrFormat("the kernel knows no way to reset %s", Spell(device)));
  }
  if (device.reset_method.value() != "bus") return;
  for (const PciDevice& other : context.facts.devices) {
    const bool same_bus =
        other.address.domain == device.address.domain && other.address.bus == device.address.bus;
    if (!same_bus || other.IsBridge() || other.group == device.group) continue;
    return Refuse(draft, Code::kSharedBusReset, &device,
                  absl::StrFormat("%s can only be reset with its bus, where %s of another group "
                                  "is too",
                                  Spell(device), Spell(other)));
  }
}

constexpr std::array<MemberRule, 16> kRules = {
    RequireGroup,      RefuseNoiommu,     RefuseForeign,     RefuseVf,
    RefusePfWithVfs,   RefuseBootDisplay, RefuseFrameBuffer, RefuseUnknownDriver,
    RequireOverride,   RefuseReserved,    RefuseDenied,      RefuseDead,
    RefuseWideAddress, WarnReset,         RefuseVgpu,        WarnMapFails,
};

// A member that the group lists and that could not be read, or not be told to be in it, may be
// held by anybody.
void RefuseUnreadMembers(const Context& context, Draft& draft) {
  if (!draft.plan.group) return;
  for (const PciAddress& address : context.facts.groups.at(*draft.plan.group).listed) {
    if (std::ranges::count(draft.plan.members, address, &Member::address) > 0) continue;
    Refuse(draft, Code::kForeignMember, nullptr,
           absl::StrFormat("%s is a member of group %d and could not be read", address.ToString(),
                           *draft.plan.group),
           absl::StrFormat("see what is wrong with it: `ls -l /sys/bus/pci/devices/%s/`",
                           address.ToString()));
    draft.plan.refusals.back().address = address;
  }
}

}  // namespace

bool WillBind(const Draft& draft, size_t i) {
  const Role role = draft.plan.members[i].role;
  return role != Role::kForeign && role != Role::kBridge && role != Role::kPhysical &&
         !IsOnVfio(*draft.devices[i]);
}

bool IsOnVfio(const PciDevice& device) {
  return device.driver && (device.vfio_cdev || IsVfioDriver(*device.driver));
}

bool IsVfioDriver(std::string_view driver) {
  return driver == "vfio-pci" || driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci");
}

bool IsHarmlessDriver(std::string_view driver) {
  return IsVfioDriver(driver) || driver == "pci-stub" || driver == "pcieport";
}

std::string GroupNodeName(const NodeFacts& facts, int group) {
  const auto known = facts.groups.find(group);
  const bool noiommu = known != facts.groups.end() && known->second.noiommu;
  return absl::StrFormat("%s%d", noiommu ? "noiommu-" : "", group);
}

void ApplyRules(const Context& context, Draft& draft) {
  if (!draft.Selected()) return ApplyVfRules(context, draft);
  RefuseUnreadMembers(context, draft);
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.devices[i]->IsBridge()) continue;
    for (const MemberRule rule : kRules) rule(context, draft, i);
  }
}

std::string Spell(const PciDevice& device) {
  return absl::StrFormat("%s (%04x:%04x, %s%s)", device.address.ToString(), device.vendor,
                         device.device, device.driver ? "driver " : "no driver",
                         device.driver.value_or(""));
}

void Refuse(Draft& draft, Code code, const PciDevice* member, std::string text,
            std::string remedy) {
  Refusal refusal{.code = code,
                  .group = draft.plan.group,
                  .text = std::move(text),
                  .remedy = std::move(remedy)};
  if (member != nullptr) refusal.address = member->address;
  (IsWarning(code) ? draft.plan.warnings : draft.plan.refusals).push_back(std::move(refusal));
}

std::string RemedyFor(Code code, const PciDevice* member) {
  std::string remedy(DefaultRemedy(code));
  if (const size_t at = remedy.find("<address>"); member != nullptr && at != std::string::npos) {
    remedy.replace(at, std::string_view("<address>").size(), member->address.ToString());
  }
  return remedy;
}

void Refuse(Draft& draft, Code code, const PciDevice* member, std::string text) {
  Refuse(draft, code, member, std::move(text), RemedyFor(code, member));
}

void RefuseUnlessOverruled(const Context& context, Draft& draft, Code code, const PciDevice& member,
                           std::string text, std::string remedy) {
  if (remedy.empty()) remedy = RemedyFor(code, &member);
  if (!context.policy.guard_override.contains(member.address)) {
    return Refuse(draft, code, &member, std::move(text), std::move(remedy));
  }
  draft.plan.warnings.push_back({.code = code,
                                 .group = draft.plan.group,
                                 .address = member.address,
                                 .text = text + "; overruled by guard.override",
                                 .remedy = std::move(remedy),
                                 .overruled = true});
}

}  // namespace vfio_agent
