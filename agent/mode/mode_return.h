// What a mode gives back: devices and mediated devices that this agent has taken or made, and that
// the mode offers to nobody.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/mode/mode.h"
#include "agent/session.h"
#include "iommu/plan/release.h"

namespace vfio_agent {

struct Surplus {
  std::vector<PciAddress> devices;  // with records of this boot
  std::set<std::string> mdevs;      // by uuid
  std::set<int> groups;             // of all of them
  bool operator==(const Surplus&) const = default;
};

// None of a kind that the mode has a use for: what is excluded there is the configuration's matter,
// and stays where it is. Adopted devices and what others have made are never among them.
Surplus SurplusOf(const ModeUse& use, const Picture& picture);

// The way back of what nobody is at work on; who uses it is asked for it. Refused is what is held.
std::vector<GroupRelease> PlanModeReturn(const Surplus& surplus, Session& session,
                                         Picture& picture);

}  // namespace vfio_agent
