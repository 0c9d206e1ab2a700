#include "agent/kubevirt/machine.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "iommu/policy/naming.h"

namespace vfio_agent {
namespace {

// What a machine asks of one resource.
struct Request {
  size_t gpus = 0;
  size_t host_devices = 0;
  std::string where;  // the first
  size_t Count() const { return gpus + host_devices; }
};
using Requests = std::map<std::string, Request>;

Difference UnknownName(const Served& served, const std::string& name, const std::string& where) {
  Difference finding{.code = "unknown-name", .hinders = true, .where = where};
  for (const ServedResource& resource : served.resources) {
    if (!DiffersOnlyInSpelling(resource.name, name)) continue;
    finding.code = "name-differs";
    finding.text = absl::StrFormat("'%s' is not the name, byte for byte", name);
    finding.remedy = absl::StrFormat("write '%s'", resource.name);
    return finding;
  }
  if (const std::string why = served.WhyRefused(name); !why.empty()) {
    finding.code = "refused-here";
    finding.text = absl::StrFormat("this node refuses all devices of %s: %s", name, Printable(why));
    finding.remedy = "see `vfio-agent plan`";
    return finding;
  }
  if (served.by_claims.contains(name)) {
    finding.code = "by-claims";
    finding.text = absl::StrFormat("%s goes by resource claims here (serve: dra)", name);
    finding.remedy = "write a claimName and a requestName instead of the deviceName";
    return finding;
  }
  finding.text = absl::StrFormat("vfio-agent serves nothing called '%s' on this node", name);
  finding.remedy = "`vfio-agent list resources` has the names; other nodes may serve others";
  return finding;
}

// True where `count` units can be had without leaving part of a group to nobody.
bool FitsWholeGroups(const ServedResource& resource, size_t count) {
  std::vector<bool> reachable(count + 1, false);
  reachable[0] = true;
  for (const auto& entry : resource.groups) {
    for (size_t sum = count; sum >= entry.second.size(); --sum) {
      if (reachable[sum - entry.second.size()]) reachable[sum] = true;
    }
  }
  return reachable[count];
}

// Where units are given in sets only, other numbers are refused when the machine starts.
void CheckSize(const ServedResource& resource, const Request& request,
               std::vector<Difference>& findings) {
  if (std::ranges::count(resource.sizes, request.Count()) > 0) return;
  findings.push_back(
      {.code = "no-such-size",
       .hinders = true,
       .where = request.where,
       .text = absl::StrFormat("asks for %d of %s, of which a machine can have %s", request.Count(),
                               resource.name, SizesText(resource.sizes)),
       .remedy = absl::StrFormat("ask for %s; `vfio-agent explain %s` names the units that go "
                                 "together",
                                 SizesText(resource.sizes), resource.name)});
}

// A bundle that is one unit has one item in the machine, and KubeVirt gives one device for it.
void CheckFirstOnly(const ServedResource& resource, const Request& request,
                    std::vector<Difference>& findings) {
  if (!resource.first_only) return;
  findings.push_back(
      {.code = "first-only",
       .where = request.where,
       .text = absl::StrFormat("a unit of %s is several devices, of which KubeVirt gives the "
                               "machine the first only",
                               resource.name),
       .remedy = "set resources[].bundle.unit: device, and list one item for each device"});
}

void CheckCount(const ServedResource& resource, const Request& request,
                std::vector<Difference>& findings) {
  const size_t count = request.Count();
  if (count > resource.Units()) {
    findings.push_back({.code = "too-many",
                        .hinders = true,
                        .where = request.where,
                        .text = absl::StrFormat("asks for %d of %s, this node has %d", count,
                                                resource.name, resource.Units()),
                        .remedy = "ask for fewer; another node may have more"});
  } else if (!resource.sizes.empty()) {
    CheckSize(resource, request, findings);
  } else if (!FitsWholeGroups(resource, count)) {
    findings.push_back(
        {.code = "group-split",
         .where = request.where,
         .text = absl::StrFormat("%d of %s leave a part of an IOMMU group, which no other machine "
                                 "can have as long as this one runs",
                                 count, resource.name),
         .remedy = "ask for whole groups (`vfio-agent kubevirt` names them), or accept it"});
  }
}

Requests Collect(const KubevirtMachine& machine, std::vector<Difference>& findings) {
  Requests requests;
  for (const WantedDevice& device : machine.devices) {
    if (device.resource.empty()) {
      findings.push_back(
          {.code = device.claimed ? "claimed" : "no-name",
           .hinders = !device.claimed,
           .where = device.where,
           .text = device.claimed ? "comes by a resource claim, which is not compared"
                                  : "has no deviceName",
           .remedy = device.claimed ? "none" : "write the name of a resource as its deviceName"});
      continue;
    }
    Request& request = requests[device.resource];
    if (request.Count() == 0) request.where = device.where;
    ++(device.list == MachineList::kGpus ? request.gpus : request.host_devices);
  }
  return requests;
}

}  // namespace

bool DiffersOnlyInSpelling(std::string_view a, std::string_view b) {
  return a != b && ResourceVariable(a) == ResourceVariable(b);
}

void CheckGate(const KubevirtConfiguration* configuration, std::vector<Difference>& findings) {
  if (configuration != nullptr && configuration->feature_gates.contains(kHostDevicesGate)) return;
  Difference finding{.code = "gate-missing",
                     .hinders = configuration != nullptr,
                     .where = configuration == nullptr ? "" : configuration->where,
                     .remedy = "add HostDevices to developerConfiguration.featureGates"};
  finding.text = "hostDevices need KubeVirt's feature gate HostDevices";
  if (configuration != nullptr) finding.text += ", which is not set";
  findings.push_back(std::move(finding));
}

std::vector<Difference> CheckMachine(const Served& served, const KubevirtMachine& machine,
                                     const KubevirtConfiguration* configuration) {
  std::vector<Difference> findings;
  const Requests requests = Collect(machine, findings);
  for (const auto& [name, request] : requests) {
    if (request.gpus > 0 && request.host_devices > 0) {
      findings.push_back(
          {.code = "in-both-lists",
           .hinders = true,
           .where = request.where,
           .text = absl::StrFormat("%s stands under gpus and under hostDevices: each "
                                   "list counts from the first address, so the "
                                   "machine would get one device twice",
                                   name),
           .remedy = "list all of a resource under one of the two"});
    }
    const ServedResource* const resource = served.Find(name);
    if (resource == nullptr) {
      findings.push_back(UnknownName(served, name, request.where));
    } else {
      CheckCount(*resource, request, findings);
      CheckFirstOnly(*resource, request, findings);
    }
  }
  if (std::ranges::count(machine.devices, MachineList::kHostDevices, &WantedDevice::list) > 0) {
    CheckGate(configuration, findings);
  }
  return findings;
}

}  // namespace vfio_agent
