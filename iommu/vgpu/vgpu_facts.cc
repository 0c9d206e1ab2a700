#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/silence.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

Condition Because(UnitState state, Code code, const std::string& text) {
  return {state, absl::StrFormat("%s: %s", CodeName(code), text)};
}

// By its group and the legacy container, or by cdev where guests are given those.
std::string WhatNodeIsMissing(const PciDevice& device, const Context& context) {
  const std::set<std::string>& nodes = context.facts.vfio_nodes;
  const std::string group = GroupNodeName(context.facts, *device.group);
  if (nodes.contains(group) && nodes.contains("vfio")) return "";
  const bool has_cdev = device.vfio_cdev && nodes.contains("devices/" + *device.vfio_cdev);
  if (has_cdev && context.facts.iommu_node && context.policy.iommufd) return "";
  return absl::StrFormat("/dev/vfio/%s is not there", nodes.contains(group) ? "vfio" : group);
}

// A controller, or what cards have beside it: sound (04), USB and the like (0c).
bool IsOfCard(const PciDevice& device) {
  const uint32_t base = device.class_code >> 16;
  return IsDisplay(device) || base == 0x04 || base == 0x0c;
}

}  // namespace

const MdevRule* FindVgpuRule(const Policy& policy, const PciDevice& device) {
  return device.IsVf() || !IsDisplay(device) ? nullptr : FindParentRule(policy.vgpu, device);
}

std::string ParentEntry(const Policy& policy, const PciDevice& device) {
  if (const MdevRule* const rule = FindMdevRule(policy, device)) {
    return absl::StrFormat("mdev[%d].parent", rule - policy.mdev.data());
  }
  if (device.IsVf() || !IsOfCard(device)) return "";
  const MdevRule* const rule = FindParentRule(policy.vgpu, device);
  return rule == nullptr ? "" : absl::StrFormat("vgpu[%d].parent", rule - policy.vgpu.data());
}

bool StaysWithDriver(const Policy& policy, const PciDevice& device) {
  return !ParentEntry(policy, device).empty();
}

bool MayBeVgpu(const NodeFacts& facts, const PciAddress& address) {
  const VgpuFunction* const function = FindVgpu(facts.vgpu, address);
  return function != nullptr && !function->current.is(0);
}

std::optional<int> VgpuTypeOf(const VgpuFunction& function, const Records& records) {
  if (function.current.known()) return function.current.value();
  const auto record = records.find(function.address);
  if (record == records.end() || !HasSetVgpu(record->second)) return function.last;
  return record->second.vgpu_type;
}

bool IsOwnVgpu(const VgpuFunction& function, const Records& records) {
  const auto record = records.find(function.address);
  return record != records.end() && HasSetVgpu(record->second) && function.current.known() &&
         function.current.value() == record->second.vgpu_type;
}

bool TakesVgpuAway(const GroupPlan& group) { return group.vgpu_type == "0"; }

VgpuNames NamesOfVgpus(const NodeFacts& facts, const Records& records, const Policy& policy) {
  VgpuNames names;
  for (const MdevRule& rule : policy.vgpu) names.insert(rule.names.begin(), rule.names.end());
  for (const VgpuFunction& function : facts.vgpu.functions) {
    for (const VgpuType& type : function.creatable) names.emplace(type.id, type.name);
  }
  for (const auto& [address, record] : records) {
    if (record.vgpu_type && !record.vgpu_name.empty()) {
      names.emplace(*record.vgpu_type, record.vgpu_name);
    }
  }
  return names;
}

void RefuseVgpu(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (draft.rules[i] == nullptr || !device.IsVf()) return;
  if (const VgpuFunction* const vgpu = FindVgpu(context.facts.vgpu, device.address);
      vgpu != nullptr && !vgpu->current.is(0)) {
    const bool ours = IsOwnVgpu(*vgpu, context.custody.records);
    return Refuse(draft, Code::kForeignManager, &device,
                  absl::StrFormat("%s is a vGPU: its current_vgpu_type is not 0", Spell(device)),
                  ours ? absl::StrFormat("offer it with `vgpu`; or vfio-agent release %s, once no "
                                         "guest has it",
                                         device.address.ToString())
                       : absl::StrFormat("offer it with `vgpu`; or, if nothing uses it, echo 0 > "
                                         "/sys/bus/pci/devices/%s/nvidia/current_vgpu_type",
                                         device.address.ToString()));
  }
  const PciDevice* const physical = FindDevice(context.facts, *device.physfn);
  if (physical == nullptr || FindVgpuRule(context.policy, *physical) == nullptr) return;
  Refuse(draft, Code::kForeignManager, &device,
         absl::StrFormat("%s belongs to %s, which vgpu[].parent selects", Spell(device),
                         physical->address.ToString()),
         "take it out of resources[].select, or its physical function out of vgpu[].parent");
}

Condition ConditionOfVgpu(const PciDevice& device, const VgpuFunction& function,
                          const std::string& resource, const std::vector<PodClaim>& pods,
                          const Tenants& tenants, const Context& context) {
  if (!function.silent.empty()) {
    return {UnitState::kUnhealthy, ReasonOf(WhySilent(device, function.silent))};
  }
  if (function.current.unknown()) {
    return Because(UnitState::kUnhealthy, Code::kDriverChanged,
                   absl::StrFormat("the vGPU type of %s cannot be read", Spell(device)));
  }
  if (const std::string missing = WhatNodeIsMissing(device, context); !missing.empty()) {
    return Because(UnitState::kUnhealthy, Code::kNodeMissing, missing);
  }
  if (const std::string fatal = WhatFailedFatally(device, context); !fatal.empty()) {
    return Because(UnitState::kUnhealthy, Code::kAerFatal, fatal);
  }
  return ConditionOfLone(device.address.ToString(), *device.group, resource, pods, tenants);
}

void AddVgpuReturn(const NodeFacts& facts, const Record& record, std::vector<Action>& actions) {
  const VgpuFunction* const function = FindVgpu(facts.vgpu, record.address);
  if (function == nullptr || !HasSetVgpu(record)) return;
  if (VgpuTypeOf(*function, {{record.address, record}}) != record.vgpu_type) return;
  actions.push_back(SetVgpuType{record.address, 0, ""});
}

}  // namespace vfio_agent
