// The words by which what is on this node can be selected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/usage/complete.h"
#include "iommu/plan/plan.h"
#include "sysfs/node_facts.h"

namespace vfio_agent {

// Those that begin with `start`: addresses, groups and resources that the configuration selects;
// once something is typed also the other devices, and addresses without their domain. Pure.
std::vector<Candidate> SelectorWords(const NodeFacts& facts, const Plan& plan,
                                     const ModelNames& names, std::string_view start);

// The same for the node that `invocation` means. Asks neither the kubelet nor any process who has
// what: that may take long, and changes no word.
absl::StatusOr<std::vector<Candidate>> ReadSelectorWords(const Invocation& invocation,
                                                         std::string_view start);

}  // namespace vfio_agent
