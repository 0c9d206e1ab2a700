#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/text/json.h"
#include "iommu/policy/preset.h"

namespace vfio_agent {
namespace {

Json SelectorToJson(const Selector& selector) {
  Json json = Json::object();
  if (selector.address) json["address"] = selector.address->ToString();
  if (selector.vendor) json["vendor"] = absl::StrFormat("%04x", *selector.vendor);
  if (selector.device) json["device"] = absl::StrFormat("%04x", *selector.device);
  if (!selector.classes.empty()) json["class"] = selector.classes;
  if (selector.group) json["group"] = *selector.group;
  if (selector.driver) json["driver"] = *selector.driver;
  return json;
}

Json SelectorsToJson(const std::vector<Selector>& selectors) {
  Json list = Json::array();
  for (const Selector& selector : selectors) list.push_back(SelectorToJson(selector));
  return list;
}

Json CompanionsToJson(const ResourceRule& rule) {
  if (rule.companions == Companions::kListed) return SelectorsToJson(rule.companion_list);
  return rule.companions == Companions::kNone ? "none" : "same-slot";
}

Json BundleToJson(const ResourceRule& rule) {
  Json members = Json::array();
  for (const BundleMember& member : rule.bundle) {
    members.push_back({{"select", SelectorsToJson(member.select)},
                       {"count", member.count == 0 ? Json("all") : Json(member.count)},
                       {"near", member.same_switch ? "switch" : "any"}});
  }
  return {{"members", members}, {"unit", rule.bundle_by_device ? "device" : "bundle"}};
}

Json RuleToJson(const ResourceRule& rule) {
  Json json = {{"name", rule.name},
               {"domain", rule.domain},
               {"select", SelectorsToJson(rule.select)},
               {"exclude", SelectorsToJson(rule.exclude)},
               {"companions", CompanionsToJson(rule)},
               {"allowMembers", SelectorsToJson(rule.allow_members)},
               {"sharedGroup", rule.shared_group == SharedGroup::kUnit ? "unit" : "members"},
               {"vfioDriver", rule.vfio_driver},
               {"numa", rule.numa_nearest ? Json("nearest") : Json(rule.numa)},
               {"preset", rule.preset},
               {"suffix", rule.suffix},
               {"noiommu", rule.noiommu},
               {"partitions", rule.partitions},
               {"serve", std::string(Name(rule.serve))}};
  if (rule.sriov) {
    json["sriov"] = Json::object();
    if (rule.sriov->vfs) json["sriov"]["vfs"] = *rule.sriov->vfs;
  }
  // Its selectors are those of the bundle's members, and the file takes only one of the two.
  if (!rule.bundle.empty()) {
    json.erase("select");
    json["bundle"] = BundleToJson(rule);
  }
  return json;
}

std::string_view Name(MdevSpread spread) {
  if (spread == MdevSpread::kEach) return "each";
  return spread == MdevSpread::kNuma ? "numa" : "round-robin";
}

Json MdevRuleToJson(const MdevRule& rule) {
  Json types = Json::object();
  for (const MdevCount& wanted : rule.types) types[wanted.type] = wanted.count;
  return {{"parent", SelectorsToJson(rule.parents)},
          {"types", types},
          {"spread", std::string(Name(rule.spread))},
          {"domain", rule.domain},
          {"serve", std::string(Name(rule.serve))}};
}

Json VgpuRuleToJson(const MdevRule& rule) {
  Json json = MdevRuleToJson(rule);
  json["names"] = Json::object();
  for (const auto& [id, name] : rule.names) json["names"][absl::StrFormat("%d", id)] = name;
  return json;
}

// "bind.parallel" becomes {"bind": {"parallel": …}}.
void Put(Json& document, const std::string& key, const std::string& value) {
  const size_t dot = key.find('.');
  if (dot == std::string::npos) {
    document[key] = value;
  } else {
    document[key.substr(0, dot)][key.substr(dot + 1)] = value;
  }
}

Json ModeToJson(const ModeRule& rule) {
  if (rule.label.empty()) return std::string(Name(rule.mode));
  Json values = Json::object();
  for (const auto& [value, mode] : rule.values) values[std::string(Name(mode))].push_back(value);
  return {{"fromNodeLabel", rule.label},
          {"default", std::string(Name(rule.mode))},
          {"values", values},
          {"settle", absl::FormatDuration(rule.settle)},
          {"waitForHolders", absl::FormatDuration(rule.wait_for_holders)}};
}

// What is known of the presets that the file has.
std::string NotesOf(const Policy& policy) {
  std::string notes;
  for (size_t i = 0; i < policy.resources.size(); ++i) {
    const Preset* const preset = FindPreset(policy.resources[i].preset);
    if (preset == nullptr) continue;
    notes += absl::StrFormat("resources[%d]: preset %s: %s\n", i, preset->name, preset->note);
  }
  return notes;
}

void PrintMisspelt() {
  for (const std::string& sentence : TellMisspeltVariables()) PrintError(sentence);
}

}  // namespace

Json PolicyToJson(const Config& config) {
  const Policy& policy = config.whole;
  Json document = {{"apiVersion", "vfio-agent/v1"}, {"mode", ModeToJson(config.mode)}};
  Json resources = Json::array();
  for (const ResourceRule& rule : policy.resources) resources.push_back(RuleToJson(rule));
  document["resources"] = resources;
  document["aliases"] = policy.aliases;
  document["mdev"] = Json::array();
  for (const MdevRule& rule : policy.mdev) document["mdev"].push_back(MdevRuleToJson(rule));
  document["vgpu"] = Json::array();
  for (const MdevRule& rule : policy.vgpu) document["vgpu"].push_back(VgpuRuleToJson(rule));
  Json overrides = Json::array();
  for (const PciAddress& address : policy.guard_override) overrides.push_back(address.ToString());
  document["guard"]["override"] = overrides;
  return document;
}

int ConfigCheckCommand(Session& session) {
  PrintMisspelt();
  PrintText(session.config().file_name + ": valid\n" + NotesOf(session.config().whole));
  return kExitDone;
}

int ConfigShowCommand(Session& session) {
  PrintMisspelt();
  Json document = PolicyToJson(session.config());
  for (const auto& [key, setting] : ResolveSettings(session.Sources())) {
    Put(document, key, setting.value);
  }
  // There is no table of it: the file's own form is what a person wants.
  PrintDocument(document,
                session.invocation().output == Output::kJson ? Output::kJson : Output::kYaml);
  return kExitDone;
}

}  // namespace vfio_agent
