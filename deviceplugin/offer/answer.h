// Answer: what Allocate told a container of a unit. Values; kept by the Ledger, and on disk.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deviceplugin/offer/offer.h"
#include "iommu/tenancy/tenancy.h"

namespace vfio_agent {

// What the last answer about a unit named. The kubelet hands it out again, without asking, after
// its own restart and after a reboot, in which group numbers and cdevs are dealt anew.
struct Answer {
  std::string resource;
  int group = 0;
  std::vector<std::string> addresses;
  std::vector<std::string> nodes;
  bool operator==(const Answer&) const = default;
};
using Answers = std::map<std::string, Answer>;  // by unit

Answer AnswerAbout(const std::string& resource, const OfferedUnit& unit);

// What an answer about `now` would say otherwise than `then`; empty for nothing.
std::string Difference(const Answer& then, const OfferedUnit& now);

// What an agent before this one offered and pods still have, as far as answers and claims tell it:
// none of it healthy. MakeOffers() goes on from there, so that no list lacks what a pod has.
std::vector<Offer> OffersOfPods(const PodClaims& claims, const Answers& answers);

// What each unit stood for besides the device that it is named by.
Parts PartsOf(const Answers& answers);

}  // namespace vfio_agent
