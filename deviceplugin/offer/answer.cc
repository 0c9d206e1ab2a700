#include "deviceplugin/offer/answer.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace vfio_agent {
namespace {

// The nodes of `then` that do not lead to the unit any more, or nowhere. More nodes than then do
// not matter: a setting may have added some.
std::vector<std::string> Stale(const Answer& then, const OfferedUnit& now) {
  std::vector<std::string> stale;
  for (const std::string& node : then.nodes) {
    const bool shared = node == "/dev/vfio/vfio" || node == "/dev/iommu";
    if (!shared && std::ranges::count(now.nodes, node) == 0) stale.push_back(node);
  }
  return stale;
}

}  // namespace

Answer AnswerAbout(const std::string& resource, const OfferedUnit& unit) {
  return {
      .resource = resource, .group = unit.group, .addresses = unit.addresses, .nodes = unit.nodes};
}

std::string Difference(const Answer& then, const OfferedUnit& now) {
  if (then.group != now.group) {
    return absl::StrFormat("IOMMU group %d then, %d now", then.group, now.group);
  }
  if (then.addresses != now.addresses) {
    return absl::StrFormat("addresses %s then, %s now", absl::StrJoin(then.addresses, ","),
                           absl::StrJoin(now.addresses, ","));
  }
  const std::vector<std::string> stale = Stale(then, now);
  if (stale.empty()) return "";
  return absl::StrFormat("%s then, %s now", absl::StrJoin(stale, ","),
                         absl::StrJoin(now.nodes, ","));
}

std::vector<Offer> OffersOfPods(const PodClaims& claims, const Answers& answers) {
  std::map<std::string, Offer> offers;
  for (const PodClaim& claim : claims.list) {
    if (IsResourceClaim(claim)) continue;  // was never on a list of the kubelet's
    const auto answer = answers.find(claim.unit);
    if (answer == answers.end() || answer->second.resource != claim.resource) continue;
    Offer& offer = offers[claim.resource];
    offer.resource = claim.resource;
    if (std::ranges::count(offer.units, claim.unit, &OfferedUnit::id) > 0) continue;
    offer.units.push_back({.id = claim.unit,
                           .addresses = answer->second.addresses,
                           .group = answer->second.group,
                           .members = answer->second.addresses,
                           .nodes = answer->second.nodes,
                           .was_fit = true});
  }
  std::vector<Offer> list;
  for (auto& entry : offers) list.push_back(std::move(entry.second));
  return list;
}

Parts PartsOf(const Answers& answers) {
  Parts parts;
  for (const auto& [unit, answer] : answers) {
    for (const std::string& text : answer.addresses) {
      const auto address = PciAddress::Parse(text);
      // A mediated device has a uuid there.
      if (text != unit && address.ok()) parts[{answer.resource, unit}].push_back(*address);
    }
  }
  return parts;
}

}  // namespace vfio_agent
