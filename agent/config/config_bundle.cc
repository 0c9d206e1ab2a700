#include "agent/config/config_bundle.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/config/config_resources.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kMost = 256;  // devices of one kind in a unit; partitions; units of a partition

bool HasKey(const YamlValue& map, std::string_view key) {
  return std::ranges::count(map.map, key, &YamlEntry::key) > 0;
}

absl::Status ReadCount(const YamlValue& value, BundleMember& member) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text == "all") {
    member.count = 0;
    return absl::OkStatus();
  }
  if (absl::SimpleAtoi(text, &member.count) && member.count >= 1 && member.count <= kMost) {
    return absl::OkStatus();
  }
  return YamlError(value, absl::StrFormat("'%s': want a number from 1 to %d, or all", text, kMost));
}

absl::Status ReadNear(const YamlValue& value, BundleMember& member) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "switch" && text != "any") {
    return WordError(value, text, {"switch", "any"});
  }
  member.same_switch = text == "switch";
  return absl::OkStatus();
}

absl::Status CheckMember(const YamlValue& value, const ResourceRule& rule,
                         const BundleMember& member) {
  if (member.select.empty()) return YamlError(value, "a member of a bundle needs select:");
  if (rule.bundle.empty() && member.same_switch) {
    return YamlError(value, "near: the others are near to the first one, not it to them");
  }
  if (member.count == 0 && member.same_switch) {
    return YamlError(value, "near: switch wants a count, not all");
  }
  for (const Selector& selector : member.select) {
    if (std::ranges::count(rule.select, selector) == 0) continue;
    return YamlError(value, "selects the same as an earlier member");
  }
  return absl::OkStatus();
}

absl::Status ReadMember(const YamlValue& value, ResourceRule& rule) {
  BundleMember member{.count = 1};
  RETURN_IF_ERROR(ReadMap(
      value, {{"select", [&](const YamlValue& v) { return ReadSelectors(v, member.select); }},
              {"count", [&](const YamlValue& v) { return ReadCount(v, member); }},
              {"near", [&](const YamlValue& v) { return ReadNear(v, member); }}}));
  RETURN_IF_ERROR(CheckMember(value, rule, member));
  rule.select.insert(rule.select.end(), member.select.begin(), member.select.end());
  rule.bundle.push_back(std::move(member));
  return absl::OkStatus();
}

absl::Status ReadUnit(const YamlValue& value, ResourceRule& rule) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  if (text != "bundle" && text != "device") {
    return WordError(value, text, {"bundle", "device"});
  }
  rule.bundle_by_device = text == "device";
  return absl::OkStatus();
}

absl::Status ReadItem(const YamlValue& value, std::vector<std::string>& partition) {
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(value));
  const bool number = !text.empty() && text.size() <= 4 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  std::string item = text;
  if (!number) {
    const absl::StatusOr<PciAddress> address = PciAddress::Parse(text);
    if (!address.ok()) {
      return YamlError(value, absl::StrFormat("'%s': want a unit's number or address", text));
    }
    item = address->ToString();
  }
  if (std::ranges::count(partition, item) > 0) {
    return YamlError(value, absl::StrFormat("%s is in this partition already", item));
  }
  partition.push_back(std::move(item));
  return absl::OkStatus();
}

// The scheduler takes single devices and knows no sets: what it allocated would be refused again
// and again when it is to be prepared.
absl::Status CheckServe(const YamlValue& value, const ResourceRule& rule) {
  if (rule.serve != Serve::kDra) return absl::OkStatus();
  if (!rule.bundle.empty() && rule.bundle_by_device) {
    return YamlError(value,
                     "unit: device is not for serve: dra, whose scheduler gives devices one by "
                     "one and knows no bundle: leave `unit` out, and the bundle is one device; or "
                     "give each kind an entry of its own, and ask for all in one claim");
  }
  if (!rule.partitions.empty()) {
    return YamlError(value,
                     "partitions are not for serve: dra, whose scheduler gives devices one by one "
                     "and knows no partition: make what is given together one device by `bundle`, "
                     "or serve the entry by the device plugin");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBundle(const YamlValue& value, ResourceRule& rule) {
  rule.select.clear();  // of a preset
  RETURN_IF_ERROR(ReadMap(
      value, {{"members",
               [&](const YamlValue& v) {
                 return ReadList(v, [&](const YamlValue& item) { return ReadMember(item, rule); });
               }},
              {"unit", [&](const YamlValue& v) { return ReadUnit(v, rule); }}}));
  return rule.bundle.empty() ? YamlError(value, "a bundle needs members:") : absl::OkStatus();
}

absl::Status ReadPartitions(const YamlValue& value, ResourceRule& rule) {
  return ReadList(value, [&](const YamlValue& list) -> absl::Status {
    std::vector<std::string> partition;
    RETURN_IF_ERROR(
        ReadList(list, [&](const YamlValue& item) { return ReadItem(item, partition); }));
    if (partition.empty()) return YamlError(list, "a partition needs units");
    if (partition.size() > kMost || rule.partitions.size() == kMost) {
      return YamlError(list, absl::StrFormat("more than %d", kMost));
    }
    rule.partitions.push_back(std::move(partition));
    return absl::OkStatus();
  });
}

absl::Status CheckBundle(const YamlValue& value, const Policy& policy, const ResourceRule& rule) {
  if (!rule.bundle.empty() && HasKey(value, "select")) {
    return YamlError(value, "either select: or bundle:, not both");
  }
  if (!rule.bundle.empty() && rule.sriov) {
    return YamlError(value, "either sriov: or bundle:, not both");
  }
  if (!rule.bundle.empty() && rule.name.empty()) {
    return YamlError(value, "a bundle needs a name: it is of several models");
  }
  if (!rule.bundle.empty() && !rule.partitions.empty()) {
    return YamlError(value, "either bundle: or partitions:, not both");
  }
  RETURN_IF_ERROR(CheckServe(value, rule));
  for (const ResourceRule& other : policy.resources) {
    if (rule.name.empty() || other.name != rule.name) continue;
    if (rule.bundle.empty() && other.bundle.empty()) continue;
    return YamlError(value,
                     absl::StrFormat("'%s': a bundle's name is for one entry only", rule.name));
  }
  return absl::OkStatus();
}

}  // namespace vfio_agent
