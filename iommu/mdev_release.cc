#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/mdev.h"

namespace vfio_agent {

std::vector<GroupRelease> PlanMdevRelease(const NodeFacts& facts, const Custody& custody,
                                          const std::vector<PciAddress>& wanted) {
  std::vector<GroupRelease> list;
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (!mdev.group || !IsOwnMdev(mdev) || !std::ranges::count(wanted, *mdev.parent)) continue;
    GroupRelease release{.group = *mdev.group, .mdev = mdev.uuid};
    const std::string users = WhyHeld(custody, facts, *mdev.group);
    if (users.empty()) {
      release.actions.push_back(RemoveMdev{mdev.uuid});
    } else {
      release.refusals.push_back(
          {.code = Code::kHeld,
           .group = *mdev.group,
           .address = *mdev.parent,
           .text = absl::StrFormat("%s (group %d) is in use by %s", mdev.uuid, *mdev.group, users),
           .remedy = std::string(DefaultRemedy(Code::kHeld))});
    }
    list.push_back(std::move(release));
  }
  return list;
}

std::vector<PciAddress> ParentsOfOwnMdevs(const NodeFacts& facts) {
  std::vector<PciAddress> parents;
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (IsOwnMdev(mdev) && !std::ranges::count(parents, *mdev.parent)) {
      parents.push_back(*mdev.parent);
    }
  }
  return parents;
}

}  // namespace vfio_agent
