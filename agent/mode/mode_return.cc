#include "agent/mode/mode_return.h"

#include <algorithm>

#include "agent/work/taken.h"
#include "iommu/mdev/mdev.h"

namespace vfio_agent {
namespace {

// Even looking at those can block.
bool IsUnderway(const Underway& underway, int group) {
  return underway.at_work.contains(group) || underway.stuck.contains(group) ||
         underway.elsewhere.contains(group);
}

bool IsIdle(const GroupRelease& release, const Underway& underway) {
  return std::ranges::none_of(release.vf_groups,
                              [&](int group) { return IsUnderway(underway, group); });
}

}  // namespace

Surplus SurplusOf(const ModeUse& use, const Picture& picture) {
  Surplus surplus;
  for (const PciAddress& address : TakenDevices(picture)) {
    const bool is_vgpu = picture.custody.records.at(address).vgpu_type.has_value();
    if (is_vgpu ? use.vgpus : use.devices) continue;
    const PciDevice* const device = FindDevice(picture.facts, address);
    if (device == nullptr || !device->group) continue;
    surplus.devices.push_back(address);
    surplus.groups.insert(*device->group);
  }
  if (use.vgpus) return surplus;
  for (const MdevInstance& mdev : picture.facts.mdev.instances) {
    if (!mdev.group || !IsOwnMdev(mdev)) continue;
    surplus.mdevs.insert(mdev.uuid);
    surplus.groups.insert(*mdev.group);
  }
  return surplus;
}

std::vector<GroupRelease> PlanModeReturn(const Surplus& surplus, Session& session,
                                         Picture& picture) {
  const Underway underway = picture.custody.underway;
  std::vector<PciAddress> wanted;
  for (const PciAddress& address : surplus.devices) {
    if (IsUnderway(underway, *FindDevice(picture.facts, address)->group)) continue;
    wanted.push_back(address);
  }
  std::set<std::string> mdevs;
  for (const MdevInstance& mdev : picture.facts.mdev.instances) {
    if (!surplus.mdevs.contains(mdev.uuid) || IsUnderway(underway, *mdev.group)) continue;
    mdevs.insert(mdev.uuid);
    // Its parent stays where it is: it is named so that the instance is asked for.
    if (mdev.parent && !std::ranges::count(wanted, *mdev.parent)) wanted.push_back(*mdev.parent);
  }
  if (wanted.empty()) return {};
  std::vector<GroupRelease> releases = PlanReturn(session, picture, std::move(wanted), mdevs);
  std::erase_if(releases, [&](const GroupRelease& release) { return !IsIdle(release, underway); });
  return releases;
}

}  // namespace vfio_agent
