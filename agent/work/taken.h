// What this agent has taken, and the way back of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "agent/session.h"
#include "iommu/plan/release.h"

namespace vfio_agent {

// The devices that the journal has of this boot. Adopted ones are not among them.
std::vector<PciAddress> TakenDevices(const Picture& picture);

// Plans to give back `wanted`, with the VFs that were made of them, and the mediated devices
// `mdevs`; asks who uses them for it, which picture.custody.inquiry has then.
std::vector<GroupRelease> PlanReturn(Session& session, Picture& picture,
                                     std::vector<PciAddress> wanted,
                                     const std::set<std::string>& mdevs);

}  // namespace vfio_agent
