#include "agent/work/taken.h"

#include <algorithm>
#include <utility>

#include "iommu/bundle/bundle.h"
#include "iommu/mdev/mdev.h"

namespace vfio_agent {

std::vector<PciAddress> TakenDevices(const Picture& picture) {
  std::vector<PciAddress> taken;
  for (const auto& [address, record] : picture.custody.records) {
    if (record.this_boot) taken.push_back(address);
  }
  return taken;
}

std::vector<GroupRelease> PlanReturn(Session& session, Picture& picture,
                                     std::vector<PciAddress> wanted,
                                     const std::set<std::string>& mdevs) {
  wanted = WithVfs(picture.facts, picture.custody.records, std::move(wanted));
  session.InquireFor(wanted, picture);
  AddParts(PartsOf(picture.plan.resources), picture.custody.given);
  std::vector<GroupRelease> releases = PlanRelease(picture.facts, picture.custody, wanted);
  std::ranges::move(PlanMdevRelease(picture.facts, picture.custody, mdevs),
                    std::back_inserter(releases));
  return releases;
}

}  // namespace vfio_agent
