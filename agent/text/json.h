// The JSON documents of interface.md, and YAML with the same content.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "iommu/plan/plan.h"

namespace vfio_agent {

using Json = nlohmann::ordered_json;

// `all`: unselected groups too.
Json PlanToJson(const Plan& plan, bool all);
Json RefusalToJson(const Refusal& refusal);
Json RefusalsToJson(const std::vector<Refusal>& refusals);
Json AddressesToJson(const std::vector<PciAddress>& addresses);
Json DeviceToJson(const PciDevice& device, const std::string& model);

// A document as text with a final newline.
std::string DumpJson(const Json& json);
std::string DumpYaml(const Json& json);

}  // namespace vfio_agent
