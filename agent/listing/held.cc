#include "agent/listing/held.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/plan/condition.h"

namespace vfio_agent {
namespace {

const std::vector<PodClaim>& ClaimsIn(const Picture& picture) {
  static const std::vector<PodClaim> kNobodyLooked;
  return picture.custody.tenancy ? picture.custody.tenancy->claims.list : kNobodyLooked;
}

void AddOnce(const PodClaim& claim, std::vector<std::string>& texts) {
  std::string text = absl::StrFormat("%s, as %s", Spell(claim), claim.resource);
  if (std::ranges::count(texts, text) == 0) texts.push_back(std::move(text));
}

bool IsUnit(const Plan& plan, const std::string& id) {
  return std::ranges::any_of(plan.resources, [&id](const Resource& resource) {
    return std::ranges::count(resource.units, id, &Unit::id) > 0;
  });
}

}  // namespace

std::vector<std::string> WhoHas(const Picture& picture, const PciAddress& device) {
  std::vector<std::string> texts;
  const std::string address = device.ToString();
  for (const PodClaim& claim : ClaimsIn(picture)) {
    if (claim.unit == address || HasPart(picture.custody.given, claim, device)) {
      AddOnce(claim, texts);
    }
  }
  return texts;
}

std::vector<std::string> WhoHasMdev(const Picture& picture, const std::string& uuid) {
  std::vector<std::string> texts;
  for (const PodClaim& claim : ClaimsIn(picture)) {
    if (claim.unit == uuid) AddOnce(claim, texts);
  }
  return texts;
}

std::vector<std::string> TellHeldWithoutOffer(const Picture& picture) {
  std::vector<std::string> sentences;
  for (const PodClaim& claim : ClaimsIn(picture)) {
    // Of the kubelet's pods those of other plugins' devices are listed, too.
    if (!IsResourceClaim(claim) || IsUnit(picture.plan, claim.unit)) continue;
    sentences.push_back(
        absl::StrFormat("%s has %s, as %s, though no resource offers it now: it stays as it is "
                        "until the claim is given up",
                        Spell(claim), claim.unit, claim.resource));
  }
  return sentences;
}

}  // namespace vfio_agent
