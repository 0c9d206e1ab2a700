// How Kubernetes changes an object by a patch, as far as its users here can tell.
#pragma once

#include <nlohmann/json.hpp>

namespace vfio_agent {

// RFC 7386.
void MergePatch(const nlohmann::json& patch, nlohmann::json& object);

// Server-side apply with force: `wanted` is set, and what the same manager had applied before
// (`before`) and has no more goes. Lists whose items have a "type" are maps by it, as the
// conditions of a Node; all other lists are replaced.
void ServerSideApply(const nlohmann::json& before, const nlohmann::json& wanted,
                     nlohmann::json& object);

}  // namespace vfio_agent
