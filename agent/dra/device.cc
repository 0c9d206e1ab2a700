#include "agent/dra/device.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongestText = 64;  // of an attribute

// A value that is cut would be another one: none is given then.
void AddText(const char* name, const std::string& text, DraDevice& device) {
  if (!text.empty() && text.size() <= kLongestText) device.attributes[name] = text;
}

// Models are for people, who do with the beginning. pci.ids may have any bytes.
std::string Clip(std::string text) {
  std::erase_if(text, [](char c) { return c < ' ' || c > '~'; });
  if (text.size() > kLongestText) text.resize(kLongestText);
  return text;
}

// "driver-changed: 0000:3b:00.0 is not …" begins with the code.
std::string CodeOf(const std::string& reason) {
  const std::string code = reason.substr(0, reason.find(':'));
  const bool plain =
      !code.empty() && code.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos;
  return plain && code.size() < reason.size() ? code : "unhealthy";
}

// How many units each group has, of all offers together.
std::map<int, int> UnitsByGroup(const std::vector<Offer>& offers) {
  std::map<int, int> counts;
  for (const Offer& offer : offers) {
    for (const OfferedUnit& unit : offer.units) {
      for (const int group : GroupsOf(unit)) ++counts[group];
    }
  }
  return counts;
}

bool IsNoIommu(const NodeFacts& facts, int group) {
  const auto found = facts.groups.find(group);
  return found != facts.groups.end() && found->second.noiommu;
}

// What `function` is and where: the unit itself, or the card that it is a part of.
void DescribeFunction(const PciDevice& function, const ModelNames& names, DraDevice& device) {
  AddText("resource.kubernetes.io/pcieRoot", function.root, device);
  AddText("vendor", absl::StrFormat("%04x", function.vendor), device);
  AddText("device", absl::StrFormat("%04x", function.device), device);
  const auto model = names.find({function.vendor, function.device});
  if (model != names.end()) AddText("model", Clip(model->second), device);
}

// Where both are there KubeVirt takes the uuid: the card's own address is nothing that a guest
// gets, and has another name.
void DescribeMdev(const MdevInstance& mdev, const NodeFacts& facts, const ModelNames& names,
                  DraDevice& device) {
  AddText("mdevUUID", mdev.uuid, device);
  AddText("vfioDriver", mdev.driver.value_or(""), device);
  const PciDevice* const card = mdev.parent ? FindDevice(facts, *mdev.parent) : nullptr;
  if (card == nullptr) return;
  AddText("card", card->address.ToString(), device);
  DescribeFunction(*card, names, device);
}

// Windows that the guest's memory map must have room for: of all functions, and the largest one,
// which is the whole memory of many an accelerator.
void AddRegions(const PciDevice& function, DraDevice& device) {
  for (const Bar& bar : function.bars) {
    device.capacity["regions"] += bar.size_bytes;
    device.capacity["largestRegion"] = std::max(device.capacity["largestRegion"], bar.size_bytes);
  }
}

DraDevice MakeDevice(const Offer& offer, const OfferedUnit& unit, const Plan& plan,
                     const NodeFacts& facts, const ModelNames& names) {
  DraDevice device{.name = DraDeviceName(unit.id), .resource = offer.resource, .unit = unit.id};
  AddText("resource", offer.resource, device);
  device.attributes["iommuGroup"] = int64_t{unit.group};
  device.attributes["functions"] = static_cast<int64_t>(unit.addresses.size());
  const std::vector<int> groups = GroupsOf(unit);
  device.attributes["isolated"] =
      !plan.acs_override &&
      std::ranges::none_of(groups, [&](int group) { return IsNoIommu(facts, group); });
  if (offer.numa && unit.numa_node) device.attributes["numaNode"] = int64_t{*unit.numa_node};
  for (const std::string& text : unit.addresses) {
    const auto address = PciAddress::Parse(text);
    const PciDevice* const function = address.ok() ? FindDevice(facts, *address) : nullptr;
    if (function == nullptr) continue;
    if (text == unit.id) {
      AddText("resource.kubernetes.io/pciBusID", text, device);
      AddText("vfioDriver", function->driver.value_or(""), device);
      if (!unit.vgpu_type.empty() && function->physfn) {
        AddText("card", function->physfn->ToString(), device);
      }
      DescribeFunction(*function, names, device);
    }
    AddRegions(*function, device);
  }
  if (const MdevInstance* const mdev = FindMdev(facts.mdev, unit.id)) {
    DescribeMdev(*mdev, facts, names, device);
  }
  AddText("type", unit.type_name, device);
  if (!unit.healthy) {
    device.taint = CodeOf(unit.reason);
    device.reason = unit.reason;
  }
  return device;
}

Json ValueOf(const DraAttribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute)) return {{"string", *text}};
  if (const auto* number = std::get_if<int64_t>(&attribute)) return {{"int", *number}};
  return {{"bool", std::get<bool>(attribute)}};
}

}  // namespace

std::string DraDeviceName(std::string_view unit) {
  std::string name(unit);
  std::ranges::replace_if(
      name, [](char c) { return c == ':' || c == '.'; }, '-');
  return name;
}

std::vector<DraDevice> MakeDraDevices(const std::vector<Offer>& offers, const Plan& plan,
                                      const NodeFacts& facts, const ModelNames& names) {
  const std::map<int, int> counts = UnitsByGroup(offers);
  std::vector<DraDevice> devices;
  for (const Offer& offer : offers) {
    for (const OfferedUnit& unit : offer.units) {
      if (unit.withdrawn != absl::InfiniteFuture()) continue;
      DraDevice device = MakeDevice(offer, unit, plan, facts, names);
      for (const int group : GroupsOf(unit)) {
        if (counts.at(group) > 1) device.shared_groups.push_back(group);
      }
      devices.push_back(std::move(device));
    }
  }
  std::ranges::sort(devices, {}, &DraDevice::name);
  return devices;
}

Json AttributesToJson(const DraDevice& device) {
  Json attributes = Json::object();
  for (const auto& [name, value] : device.attributes) attributes[name] = ValueOf(value);
  return attributes;
}

}  // namespace vfio_agent
