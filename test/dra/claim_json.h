// ResourceClaims as the API server gives them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/dra/dra_claims.h"

namespace vfio_agent {

// Allocated: pairs of request and device, of the driver vfio-agent and the pool node-1.
inline nlohmann::json ClaimJson(const ClaimRef& claim,
                                const std::vector<std::pair<std::string, std::string>>& devices) {
  nlohmann::json results = nlohmann::json::array();
  for (const auto& [request, device] : devices) {
    results.push_back(
        {{"request", request}, {"driver", "vfio-agent"}, {"pool", "node-1"}, {"device", device}});
  }
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata",
           {{"namespace", claim.claim_namespace}, {"name", claim.name}, {"uid", claim.uid}}},
          {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}};
}

}  // namespace vfio_agent
