#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "iommu/mdev/mdev.h"

namespace vfio_agent {

std::vector<GroupRelease> PlanMdevRelease(const NodeFacts& facts, const Custody& custody,
                                          const std::set<std::string>& wanted) {
  std::vector<GroupRelease> list;
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (!mdev.group || !IsOwnMdev(mdev) || !wanted.contains(mdev.uuid)) continue;
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

std::set<std::string> OwnMdevs(const NodeFacts& facts) {
  std::set<std::string> uuids;
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (IsOwnMdev(mdev)) uuids.insert(mdev.uuid);
  }
  return uuids;
}

std::optional<std::set<std::string>> OwnMdevsOf(const NodeFacts& facts,
                                                const std::vector<Resource>& resources,
                                                std::string_view resource) {
  const auto named = std::ranges::find(resources, resource, &Resource::name);
  const bool mdev =
      named != resources.end() && !named->units.empty() && !named->units.front().mdev_type.empty();
  if (!mdev) return std::nullopt;
  std::set<std::string> uuids = OwnMdevs(facts);
  std::erase_if(uuids, [&named](const std::string& uuid) {
    return std::ranges::count(named->units, uuid, &Unit::id) == 0;
  });
  return uuids;
}

const MdevInstance* MdevMeant(const NodeFacts& facts, std::string_view selector) {
  const std::string uuid = absl::AsciiStrToLower(std::string(selector));
  const auto found = std::ranges::find_if(facts.mdev.instances, [&](const MdevInstance& mdev) {
    return mdev.parent && (mdev.uuid == uuid ||
                           (mdev.group && selector == absl::StrFormat("group:%d", *mdev.group)));
  });
  return found == facts.mdev.instances.end() ? nullptr : &*found;
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
