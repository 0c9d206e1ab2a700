#include "agent/config/config_resources.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/config/config_bundle.h"
#include "agent/config/config_preset.h"
#include "iommu/policy/naming.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::StatusOr<PciAddress> ReadAddress(const YamlValue& value) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  const absl::StatusOr<PciAddress> address = PciAddress::Parse(text);
  if (!address.ok()) return YamlError(value, Message(address.status()));
  return *address;
}

absl::StatusOr<uint16_t> ReadHex16(const YamlValue& value) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  uint16_t number = 0;
  const char* const end = text.data() + text.size();
  if (text.size() != 4 || std::from_chars(text.data(), end, number, 16).ptr != end) {
    return YamlError(value, absl::StrFormat("'%s': want four hex digits in quotes", text));
  }
  return number;
}

absl::Status AddClass(const YamlValue& value, std::vector<std::string>& classes) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  const bool hex = text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!hex || (text.size() != 2 && text.size() != 4 && text.size() != 6)) {
    return YamlError(value,
                     absl::StrFormat("'%s': want 2, 4 or 6 hex digits of a PCI class", text));
  }
  classes.push_back(text);
  return absl::OkStatus();
}

absl::Status ReadClasses(const YamlValue& value, std::vector<std::string>& classes) {
  if (value.kind == YamlValue::Kind::kScalar) return AddClass(value, classes);
  return ReadList(value, [&](const YamlValue& item) { return AddClass(item, classes); });
}

absl::Status ReadGroupNumber(const YamlValue& value, Selector& selector) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  int group = -1;
  if (!absl::SimpleAtoi(text, &group) || group < 0) {
    return YamlError(value, absl::StrFormat("'%s': want a group number", text));
  }
  selector.group = group;
  return absl::OkStatus();
}

absl::StatusOr<Selector> ReadSelector(const YamlValue& value) {
  Selector selector;
  const auto hex = [](std::optional<uint16_t>& field) {
    return [&field](const YamlValue& v) -> absl::Status {
      ASSIGN_OR_RETURN(field, ReadHex16(v));
      return absl::OkStatus();
    };
  };
  RETURN_IF_ERROR(ReadMap(
      value, {{"address",
               [&](const YamlValue& v) -> absl::Status {
                 ASSIGN_OR_RETURN(selector.address, ReadAddress(v));
                 return absl::OkStatus();
               }},
              {"vendor", hex(selector.vendor)},
              {"device", hex(selector.device)},
              {"class", [&](const YamlValue& v) { return ReadClasses(v, selector.classes); }},
              {"group", [&](const YamlValue& v) { return ReadGroupNumber(v, selector); }},
              {"driver", [&](const YamlValue& v) -> absl::Status {
                 ASSIGN_OR_RETURN(selector.driver, ReadScalar(v));
                 return absl::OkStatus();
               }}}));
  // An item without a key would select the whole machine.
  if (selector == Selector{}) return YamlError(value, "a selector needs at least one key");
  return selector;
}

// Added to those of a preset, which are no less meant for that; an empty list means none at all.
absl::Status ReadExclude(const YamlValue& value, ResourceRule& rule) {
  std::vector<Selector> own;
  RETURN_IF_ERROR(ReadSelectors(value, own));
  if (own.empty()) rule.exclude.clear();
  for (Selector& selector : own) {
    if (std::ranges::count(rule.exclude, selector) == 0)
      rule.exclude.push_back(std::move(selector));
  }
  return absl::OkStatus();
}

absl::Status ReadCompanions(const YamlValue& value, ResourceRule& rule) {
  if (value.kind == YamlValue::Kind::kList) {
    rule.companions = Companions::kListed;
    return ReadSelectors(value, rule.companion_list);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "same-slot" && text != "none") {
    return WordError(value, text, {"same-slot", "none"}, "a list");
  }
  rule.companions = text == "none" ? Companions::kNone : Companions::kSameSlot;
  return absl::OkStatus();
}

absl::Status ReadSharedGroup(const YamlValue& value, ResourceRule& rule) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "members" && text != "unit") {
    return WordError(value, text, {"members", "unit"});
  }
  rule.shared_group = text == "unit" ? SharedGroup::kUnit : SharedGroup::kMembers;
  return absl::OkStatus();
}

// Two names of one variable: a machine that asks for both would get the devices of one.
absl::Status CheckCollision(const YamlValue& value, const Policy& policy, const std::string& name) {
  const std::string variable = ResourceVariable(name);
  for (size_t i = 0; i < policy.resources.size(); ++i) {
    const std::string& other = policy.resources[i].name;
    if (other.empty() || other == name || ResourceVariable(other) != variable) continue;
    return YamlError(value, absl::StrFormat("'%s' and '%s' of resources[%d] would share the "
                                            "variable %s",
                                            name, other, i, variable));
  }
  return absl::OkStatus();
}

absl::Status ReadName(const YamlValue& value, const Policy& policy, ResourceRule& rule) {
  if (value.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  ASSIGN_OR_RETURN(rule.name, ReadScalar(value));
  if (rule.name.empty()) return absl::OkStatus();
  const absl::Status status = CheckResourceName(rule.name);
  return status.ok() ? CheckCollision(value, policy, rule.name) : YamlError(value, Message(status));
}

absl::Status ReadDomain(const YamlValue& value, ResourceRule& rule) {
  ASSIGN_OR_RETURN(rule.domain, ReadScalar(value));
  const absl::Status status = CheckResourceName(rule.domain + "/MODEL");
  return status.ok() ? status : YamlError(value, Message(status));
}

absl::Status ReadVfioDriver(const YamlValue& value, ResourceRule& rule) {
  ASSIGN_OR_RETURN(rule.vfio_driver, ReadScalar(value));
  const bool plain =
      rule.vfio_driver.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos;
  if (!rule.vfio_driver.empty() && plain) return absl::OkStatus();
  return YamlError(value, absl::StrFormat("'%s': want auto or a driver's name", rule.vfio_driver));
}

constexpr int kMostVfs = 0xffff;  // NumVFs is a 16-bit register

absl::Status ReadSriov(const YamlValue& value, ResourceRule& rule) {
  rule.sriov.emplace();  // nothing at all behind the key means {}
  return ReadMap(value, {{"vfs", [&](const YamlValue& v) -> absl::Status {
                            ASSIGN_OR_RETURN(const std::string text, ReadScalar(v));
                            int count = 0;
                            if (!absl::SimpleAtoi(text, &count) || count < 1 || count > kMostVfs) {
                              return YamlError(
                                  v, absl::StrFormat("'%s': want how many to make, 1 to %d; "
                                                     "without vfs those that are there are taken",
                                                     text, kMostVfs));
                            }
                            rule.sriov->vfs = count;
                            return absl::OkStatus();
                          }}});
}

absl::StatusOr<ResourceRule> ReadRule(const YamlValue& value, const Policy& policy) {
  ResourceRule rule;
  RETURN_IF_ERROR(ApplyPreset(value, rule));
  RETURN_IF_ERROR(ReadMap(
      value,
      {{"name", [&](const YamlValue& v) { return ReadName(v, policy, rule); }},
       {"domain", [&](const YamlValue& v) { return ReadDomain(v, rule); }},
       {"select", [&](const YamlValue& v) { return ReadSelectors(v, rule.select); }},
       {"exclude", [&](const YamlValue& v) { return ReadExclude(v, rule); }},
       {"companions", [&](const YamlValue& v) { return ReadCompanions(v, rule); }},
       {"allowMembers", [&](const YamlValue& v) { return ReadSelectors(v, rule.allow_members); }},
       {"sharedGroup", [&](const YamlValue& v) { return ReadSharedGroup(v, rule); }},
       {"vfioDriver", [&](const YamlValue& v) { return ReadVfioDriver(v, rule); }},
       {"sriov", [&](const YamlValue& v) { return ReadSriov(v, rule); }},
       {"bundle", [&](const YamlValue& v) { return ReadBundle(v, rule); }},
       {"partitions", [&](const YamlValue& v) { return ReadPartitions(v, rule); }},
       {"numa", [&](const YamlValue& v) { return ReadNuma(v, rule); }},
       {"preset", [](const YamlValue&) { return absl::OkStatus(); }},  // applied above
       {"suffix", [&](const YamlValue& v) { return ReadSuffix(v, rule); }},
       {"serve", [&](const YamlValue& v) { return ReadServe(v, rule.serve); }},
       {"noiommu", [&](const YamlValue& v) { return ReadNoiommu(v, rule); }}}));
  if (rule.select.empty()) return YamlError(value, "a resource needs select: or preset:");
  RETURN_IF_ERROR(CheckBundle(value, policy, rule));
  return rule;
}

// Two entries may fit the same device, since the first one wins; two equal selectors never can
// be meant.
absl::Status CheckOverlap(const YamlValue& value, const Policy& policy, const ResourceRule& rule) {
  for (size_t i = 0; i < policy.resources.size(); ++i) {
    for (const Selector& selector : rule.select) {
      if (!std::ranges::count(policy.resources[i].select, selector)) continue;
      return YamlError(value, absl::StrFormat("selects the same as resources[%d]: the earlier "
                                              "entry takes every device",
                                              i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadServe(const YamlValue& value, Serve& serve) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "device-plugin" && text != "dra") {
    return YamlError(value, absl::StrFormat("'%s': want device-plugin or dra", text));
  }
  serve = text == "dra" ? Serve::kDra : Serve::kDevicePlugin;
  return absl::OkStatus();
}

absl::Status ReadSelectors(const YamlValue& value, std::vector<Selector>& selectors) {
  selectors.clear();  // of a preset
  return ReadList(value, [&](const YamlValue& item) -> absl::Status {
    ASSIGN_OR_RETURN(Selector selector, ReadSelector(item));
    selectors.push_back(std::move(selector));
    return absl::OkStatus();
  });
}

absl::Status ReadResources(const YamlValue& value, Policy& policy) {
  policy.resources.clear();
  return ReadList(value, [&](const YamlValue& item) -> absl::Status {
    ASSIGN_OR_RETURN(ResourceRule rule, ReadRule(item, policy));
    RETURN_IF_ERROR(CheckOverlap(item, policy, rule));
    policy.resources.push_back(std::move(rule));
    return absl::OkStatus();
  });
}

absl::Status ReadAliases(const YamlValue& value, Policy& policy) {
  policy.aliases.clear();
  if (value.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  if (value.kind != YamlValue::Kind::kMap) return YamlError(value, "want \"10de:2330\": NAME");
  for (const auto& [id, item] : value.map) {
    const absl::StatusOr<Target> target = ParseTarget(id, {});
    if (!target.ok() || !target->selector.vendor || !target->selector.device) {
      return YamlError(item, "want an id such as \"10de:2330\" as the key");
    }
    ASSIGN_OR_RETURN(const std::string name, ReadScalar(item));
    if (const absl::Status status = CheckResourceName("nvidia.com/" + name); !status.ok()) {
      return YamlError(item, Message(status));
    }
    policy
        .aliases[absl::StrFormat("%04x:%04x", *target->selector.vendor, *target->selector.device)] =
        name;
  }
  return absl::OkStatus();
}

absl::Status ReadGuard(const YamlValue& value, Policy& policy) {
  policy.guard_override.clear();
  return ReadMap(value, {{"override", [&](const YamlValue& list) {
                            return ReadList(list, [&](const YamlValue& item) -> absl::Status {
                              ASSIGN_OR_RETURN(const PciAddress address, ReadAddress(item));
                              policy.guard_override.insert(address);
                              return absl::OkStatus();
                            });
                          }}});
}

}  // namespace vfio_agent
