#include "agent/kubevirt/diff.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/kubevirt/machine.h"
#include "iommu/policy/naming.h"

namespace vfio_agent {
namespace {

using Entries = std::vector<const PermittedDevice*>;

std::string EntryFor(const ServedResource& resource) {
  if (!resource.mdev_types.empty()) {
    return absl::StrFormat(
        "add to permittedHostDevices.mediatedDevices: {mdevNameSelector: \"%s\", resourceName: %s, "
        "externalResourceProvider: true}",
        resource.mdev_types.front(), resource.name);
  }
  return absl::StrFormat(
      "add to permittedHostDevices.pciHostDevices: {pciVendorSelector: \"%s\", resourceName: %s, "
      "externalResourceProvider: true}",
      resource.selectors.empty() ? "?" : resource.selectors.front(), resource.name);
}

void CheckMissing(const ServedResource& resource, const KubevirtConfiguration& configuration,
                  std::vector<Difference>& findings) {
  for (const PermittedDevice& entry : configuration.permitted) {
    if (!DiffersOnlyInSpelling(entry.resource, resource.name)) continue;
    findings.push_back({.code = "name-differs",
                        .hinders = true,
                        .where = entry.where,
                        .text = absl::StrFormat("the entry is called '%s'; KubeVirt compares names "
                                                "byte for byte",
                                                entry.resource),
                        .remedy = absl::StrFormat("write '%s'", resource.name)});
  }
  if (!findings.empty()) return;
  findings.push_back({.code = "entry-missing",
                      .hinders = true,
                      .where = configuration.where,
                      .text = "permittedHostDevices has no entry of this name, so no machine may "
                              "ask for it",
                      .remedy = EntryFor(resource)});
}

void CheckExternal(const Entries& entries, std::vector<Difference>& findings) {
  for (const PermittedDevice* entry : entries) {
    if (entry->external) continue;
    findings.push_back({.code = "not-external",
                        .hinders = true,
                        .where = entry->where,
                        .text = "externalResourceProvider is not true: KubeVirt would start a "
                                "plugin of its own, and the two take the resource from each other",
                        .remedy = "set externalResourceProvider: true"});
  }
}

bool IsSelectorOf(const std::string& selector, const ServedResource& resource) {
  return std::ranges::count(resource.selectors, absl::AsciiStrToUpper(selector)) > 0;
}

// Of mediated devices the entry should stand in the list for them and name their type. KubeVirt
// looks at neither where the entry is external.
void CheckMediated(const ServedResource& resource, const Entries& entries,
                   std::vector<Difference>& findings) {
  const auto names_type = [&](const PermittedDevice* entry) {
    return std::ranges::count(resource.mdev_types, entry->selector) > 0;
  };
  for (const PermittedDevice* entry : entries) {
    if (entry->pci) {
      findings.push_back({.code = "wrong-list",
                          .where = entry->where,
                          .text = "these are mediated devices, and the entry stands in "
                                  "pciHostDevices; they start all the same",
                          .remedy = "take it out there; " + EntryFor(resource)});
    } else if (!names_type(entry)) {
      findings.push_back({.code = "type-mismatch",
                          .where = entry->where,
                          .text = absl::StrFormat("mdevNameSelector '%s' is no type of this "
                                                  "resource here; they start all the same",
                                                  entry->selector),
                          .remedy = absl::StrFormat("write \"%s\"", resource.mdev_types.front())});
    }
  }
}

// KubeVirt looks at the selector of an external entry only to tell Grace GPUs from others.
void CheckSelectors(const ServedResource& resource, const Entries& entries,
                    std::vector<Difference>& findings) {
  const std::string own = absl::StrJoin(resource.selectors, ", ");
  const auto fits = [&](const PermittedDevice* entry) {
    return !entry->pci || IsSelectorOf(entry->selector, resource);
  };
  if (std::ranges::none_of(entries, fits)) {
    findings.push_back({.code = "selector-mismatch",
                        .hinders = true,
                        .where = entries.front()->where,
                        .text = absl::StrFormat("pciVendorSelector '%s' fits no device of this "
                                                "resource here",
                                                entries.front()->selector),
                        .remedy = absl::StrFormat("write \"%s\"", own)});
    return;
  }
  for (const std::string& selector : resource.selectors) {
    const auto has = [&](const PermittedDevice* entry) {
      return !entry->pci || absl::AsciiStrToUpper(entry->selector) == selector;
    };
    if (std::ranges::any_of(entries, has)) continue;
    findings.push_back({.code = "selector-missing",
                        .where = entries.front()->where,
                        .text = absl::StrFormat("the resource has devices %s here, which no entry "
                                                "of it names; they start all the same",
                                                selector),
                        .remedy = absl::StrFormat("add an entry with \"%s\"", selector)});
  }
}

void CheckCollisions(const ServedResource& resource, const KubevirtConfiguration& configuration,
                     std::vector<Difference>& findings) {
  for (const PermittedDevice& entry : configuration.permitted) {
    if (!DiffersOnlyInSpelling(entry.resource, resource.name)) continue;
    findings.push_back({.code = "name-collision",
                        .where = entry.where,
                        .text = absl::StrFormat("'%s' has the same variable, %s: a machine with "
                                                "both would get the devices of one",
                                                entry.resource, ResourceVariable(resource.name)),
                        .remedy = "give one of the two another name"});
  }
}

Compared CheckResource(const ServedResource& resource, const KubevirtConfiguration& configuration) {
  Compared compared{.name = resource.name};
  if (resource.list == MachineList::kHostDevices) CheckGate(&configuration, compared.findings);
  if (!configuration.restricts) {
    compared.findings.push_back({.code = "not-restricted",
                                 .where = configuration.where,
                                 .text = "there is no permittedHostDevices: machines may ask for "
                                         "every name",
                                 .remedy = "none; to restrict them, " + EntryFor(resource)});
    return compared;
  }
  Entries entries;
  for (const PermittedDevice& entry : configuration.permitted) {
    if (entry.resource == resource.name) entries.push_back(&entry);
  }
  if (entries.empty()) {
    CheckMissing(resource, configuration, compared.findings);
    return compared;
  }
  CheckExternal(entries, compared.findings);
  if (resource.mdev_types.empty()) {
    CheckSelectors(resource, entries, compared.findings);
  } else {
    CheckMediated(resource, entries, compared.findings);
  }
  CheckCollisions(resource, configuration, compared.findings);
  return compared;
}

// Entries of which this node has nothing, each name once. One that is only misspelt stands with
// the resource that it means.
void AddElsewhere(const Served& served, const KubevirtConfiguration& configuration,
                  std::vector<Compared>& all) {
  std::set<std::string> seen;
  for (const PermittedDevice& entry : configuration.permitted) {
    const bool known = std::ranges::any_of(served.resources, [&](const ServedResource& resource) {
      return resource.name == entry.resource ||
             DiffersOnlyInSpelling(resource.name, entry.resource);
    });
    if (known || !seen.insert(entry.resource).second) continue;
    const std::string why = served.WhyRefused(entry.resource);
    Difference finding{.code = "not-here", .where = entry.where};
    finding.text = why.empty() ? "this node has no such device; other nodes may"
                               : "this node refuses its devices: " + Printable(why);
    finding.remedy = why.empty() ? "none" : "see `vfio-agent plan`";
    all.push_back({.kind = Compared::Kind::kElsewhere,
                   .name = entry.resource,
                   .findings = {std::move(finding)}});
  }
}

std::string_view Outcome(const Compared& compared) {
  if (!compared.Starts()) return "would not start";
  return compared.kind == Compared::Kind::kElsewhere ? "not here" : "would start";
}

}  // namespace

bool Compared::Starts() const {
  return std::ranges::none_of(findings, [](const Difference& finding) { return finding.hinders; });
}

std::vector<Compared> CompareWithFile(const Served& asked, const Served& node,
                                      const KubevirtFile& file) {
  std::vector<Compared> all;
  for (const KubevirtConfiguration& configuration : file.configurations) {
    for (const ServedResource& resource : asked.resources) {
      all.push_back(CheckResource(resource, configuration));
    }
    if (asked == node) AddElsewhere(node, configuration, all);
  }
  const KubevirtConfiguration* const configuration =
      file.configurations.empty() ? nullptr : &file.configurations.front();
  for (const KubevirtMachine& machine : file.machines) {
    all.push_back({.kind = Compared::Kind::kMachine,
                   .name = machine.title,
                   .findings = CheckMachine(node, machine, configuration)});
  }
  return all;
}

bool AllStart(const std::vector<Compared>& all) {
  return std::ranges::all_of(all, [](const Compared& compared) { return compared.Starts(); });
}

std::string ComparedText(const std::vector<Compared>& all) {
  std::string text;
  for (const Compared& compared : all) {
    text += absl::StrFormat("%s: %s\n", compared.name, Outcome(compared));
    for (const Difference& finding : compared.findings) {
      text += absl::StrFormat("  %s%s: %s\n", finding.hinders ? "" : "note: ", finding.code,
                              finding.text);
      if (!finding.where.empty()) text += absl::StrFormat("    at: %s\n", finding.where);
      text += absl::StrFormat("    change: %s\n", finding.remedy);
    }
  }
  return text.empty() ? "nothing to compare: this node serves nothing of what was asked for\n"
                      : text;
}

Json ComparedToJson(const std::vector<Compared>& all) {
  Json list = Json::array();
  for (const Compared& compared : all) {
    Json findings = Json::array();
    for (const Difference& finding : compared.findings) {
      findings.push_back({{"code", finding.code},
                          {"hinders", finding.hinders},
                          {"where", finding.where},
                          {"text", finding.text},
                          {"remedy", finding.remedy}});
    }
    const bool machine = compared.kind == Compared::Kind::kMachine;
    list.push_back({{"kind", machine ? "machine" : "resource"},
                    {"name", compared.name},
                    {"outcome", std::string(Outcome(compared))},
                    {"findings", findings}});
  }
  return list;
}

}  // namespace vfio_agent
