// ParseConfig: a configuration that is taken can be acted on as it is; one that is not is refused
// with its place, and nothing is thrown.
#include "agent/config/config.h"

#include "agent/config/settings.h"
#include "iommu/mdev/mdev.h"
#include "iommu/policy/naming.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kFile = "config.yaml";

void RequirePlace(const absl::Status& status) {
  RequireError(status, absl::StatusCode::kInvalidArgument);
  const std::string text(status.message());
  const size_t at = kFile.size();
  Require(text.starts_with(kFile) && text.size() > at + 1 && text[at] == ':' &&
              text.find_first_of("0123456789") == at + 1,
          "a refusal begins with file and line", text);
}

void CheckSelectors(const std::vector<Selector>& selectors) {
  for (const Selector& selector : selectors) {
    Require(!(selector == Selector{}), "no selector means the whole machine");
    if (selector.group) Require(*selector.group >= 0, "groups are not negative");
    for (const std::string& code : selector.classes) {
      Require(code.size() == 2 || code.size() == 4 || code.size() == 6,
              "a class is of two, four or six digits", code);
    }
  }
}

void CheckRule(const ResourceRule& rule) {
  Require(!rule.select.empty(), "a resource selects something");
  Require(rule.name.empty() || CheckResourceName(rule.name).ok(), "a given name is good",
          rule.name);
  Require(CheckResourceName(rule.domain + "/x").ok(), "a domain is good", rule.domain);
  Require(
      !rule.vfio_driver.empty() && rule.vfio_driver.find_first_of("/ \n;`$.") == std::string::npos,
      "a driver's name can be part of a path and of a command", rule.vfio_driver);
  Require(rule.companions == Companions::kListed || rule.companion_list.empty(),
          "companions are listed only where the list is used");
  CheckSelectors(rule.select);
  CheckSelectors(rule.exclude);
  CheckSelectors(rule.companion_list);
  CheckSelectors(rule.allow_members);
}

void CheckSettings(const Config& config) {
  size_t known = 0;
  for (const SettingRow& row : SettingRows()) {
    const auto setting = config.settings.find(row.key);
    if (setting == config.settings.end()) continue;
    Settings settings;
    Require(row.set(settings, setting->second).ok(), "a setting's value was checked", row.key);
    ++known;
  }
  Require(known == config.settings.size(), "every setting has its row in the table");
}

// Of `mdev` and of `vgpu`.
void CheckParents(const MdevRule& rule) {
  Require(!rule.parents.empty() && !rule.types.empty(), "vGPUs have parent and type");
  CheckSelectors(rule.parents);
  for (const MdevCount& wanted : rule.types) {
    Require(wanted.count >= 0 && wanted.count <= 1024, "a count has bounds");
    Require(wanted.type.find('/') == std::string::npos, "a type is no path", wanted.type);
  }
  for (const auto& [id, name] : rule.names) {
    Require(id > 0, "a type's number is one", name);
    Require(CheckResourceName("nvidia.com/" + MdevTypeResourceName(name)).ok(),
            "a type's name makes a good one", name);
  }
}

void Check(const std::string& text) {
  const std::string file(kFile);
  const absl::StatusOr<Config> config = ParseConfig(text, file);
  const absl::StatusOr<Config> again = ParseConfig(text, file);
  Require(config.status() == again.status(), "the same text gives the same answer");
  if (!config.ok()) return RequirePlace(config.status());
  Require(config->policy == again->policy && config->settings == again->settings,
          "the same text gives the same configuration");
  Require(config->in_force == Mode::kPassthrough || config->policy.resources.empty(),
          "nothing is offered to guests unless the mode is theirs");
  Require(config->in_force == config->mode.mode, "a label decides only once it was read");
  Require(config->mode.label.empty() == config->mode.values.empty(),
          "a label has values that are modes");
  Require(config->mode.settle >= absl::ZeroDuration() && config->mode.settle <= absl::Hours(1),
          "a label settles in time");
  for (const ResourceRule& rule : config->policy.resources) CheckRule(rule);
  for (const MdevRule& rule : config->policy.mdev) CheckParents(rule);
  for (const MdevRule& rule : config->policy.vgpu) CheckParents(rule);
  for (const auto& [id, model] : config->policy.aliases) {
    Require(id.size() == 9 && id[4] == ':', "an alias is of an id", id);
    Require(CheckResourceName("nvidia.com/" + model).ok(), "an alias is a good name", model);
  }
  CheckSettings(*config);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(std::string(vfio_agent::Text(data, size)));
  return 0;
}
