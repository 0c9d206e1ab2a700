#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/kubevirt/kubevirt.h"

namespace vfio_agent {
namespace {

std::string RefusedText(const Served& served) {
  std::string text;
  for (const RefusedUnit& unit : served.refused) {
    text += absl::StrFormat("#   %s of %s: %s\n", unit.unit, unit.resource, Printable(unit.reason));
  }
  return text.empty() ? text : "# Refused on this node (see `vfio-agent plan`):\n" + text;
}

std::string ToBeMadeText(const Served& served) {
  std::string text;
  for (const std::string& sentence : served.to_be_made) {
    text += absl::StrFormat("# %s: run this again when they are there\n", Printable(sentence));
  }
  return text;
}

std::string ByClaimsText(const Served& served) {
  std::string text;
  for (const auto& [name, units] : served.by_claims) {
    text += absl::StrFormat(
        "# %s: %d unit%s by claims (serve: dra): a machine has resourceClaims, and a claimName "
        "and\n"
        "# requestName instead of a deviceName; nothing of it stands in permittedHostDevices\n",
        name, units, units == 1 ? "" : "s");
  }
  return text;
}

std::string PciText(const Served& served) {
  std::string text;
  for (const ServedResource& resource : served.resources) {
    for (const std::string& selector : resource.selectors) {
      text += absl::StrFormat(
          "        - pciVendorSelector: \"%s\"\n"
          "          resourceName: %s\n"
          "          externalResourceProvider: true  # else KubeVirt serves it as well\n",
          selector, resource.name);
    }
  }
  return text.empty() ? text : "      pciHostDevices:\n" + text;
}

std::string MediatedText(const Served& served) {
  std::string text;
  for (const ServedResource& resource : served.resources) {
    for (const std::string& type : resource.mdev_types) {
      text += absl::StrFormat(
          "        - mdevNameSelector: %s\n"
          "          resourceName: %s\n"
          "          externalResourceProvider: true  # else KubeVirt serves it as well\n",
          Json(Printable(type)).dump(), resource.name);
    }
  }
  return text.empty() ? text : "      mediatedDevices:\n" + text;
}

std::string PermittedText(const Served& served) {
  std::string text =
      "# For the KubeVirt resource: kubectl -n kubevirt edit kubevirt kubevirt\n"
      "# Add to the lists that are there: they are for all nodes, and what they lack is "
      "forbidden.\n"
      "apiVersion: kubevirt.io/v1\n"
      "kind: KubeVirt\n"
      "metadata:\n"
      "  name: kubevirt\n"
      "  namespace: kubevirt\n"
      "spec:\n"
      "  configuration:\n";
  if (served.NeedsGate()) {
    text += absl::StrFormat(
        "    developerConfiguration:\n"
        "      featureGates:\n"
        "        - %s  # for hostDevices; gpus need none\n",
        kHostDevicesGate);
  }
  text += "    permittedHostDevices:\n" + PciText(served) + MediatedText(served);
  return text;
}

std::string ListText(const Served& served, MachineList list) {
  std::string text;
  int count = 0;
  const char* const word = list == MachineList::kGpus ? "gpu" : "device";
  for (const ServedResource& resource : served.resources) {
    if (resource.list != list) continue;
    if (!resource.sizes.empty()) {
      text += absl::StrFormat("            # %sa machine can have %s of these\n",
                              resource.together > 1 ? "a bundle, whole: " : "",
                              SizesText(resource.sizes));
    }
    if (resource.first_only) {
      text +=
          "            # a bundle, of which KubeVirt gives a machine the first device only: set\n"
          "            # resources[].bundle.unit: device, and list one item for each device\n";
    }
    for (size_t i = 0; i < resource.together; ++i) {
      text += absl::StrFormat("            - name: %s%d  # one of %d on this node\n", word, ++count,
                              resource.Units());
      text += absl::StrFormat("              deviceName: %s\n", resource.name);
    }
    for (const auto& [group, units] : resource.groups) {
      if (units.size() < 2) continue;
      text += absl::StrFormat("              # group %d is one machine's at a time: %s\n", group,
                              absl::StrJoin(units, ", "));
    }
  }
  if (text.empty()) return text;
  return absl::StrFormat("          %s:\n%s", Name(list), text);
}

std::string MachineText(const Served& served) {
  const std::string text =
      "---\n"
      "# For a machine: one item for each device, under one of the two lists, never under both.\n"
      "# What has one cannot be migrated live.\n";
  return text + kMachineHead + "        devices:\n" + ListText(served, MachineList::kGpus) +
         ListText(served, MachineList::kHostDevices);
}

}  // namespace

std::string KubevirtText(const Served& served) {
  if (served.resources.empty() && !served.by_claims.empty()) {
    return ByClaimsText(served) + ToBeMadeText(served) + RefusedText(served);
  }
  if (served.resources.empty()) {
    return absl::StrFormat("# This node serves nothing of what was asked for%s.\n",
                           served.to_be_made.empty() ? "" : " yet") +
           ToBeMadeText(served) + RefusedText(served);
  }
  return ByClaimsText(served) + ToBeMadeText(served) + RefusedText(served) + PermittedText(served) +
         MachineText(served);
}

}  // namespace vfio_agent
