// ResourceSlices: what the API server is told of the devices that claims can have. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/dra/device.h"

namespace vfio_agent {

inline constexpr char kDefaultDraDriver[] = "vfio-agent";
inline constexpr char kSliceApi[] = "resource.k8s.io/v1";  // Kubernetes 1.34 and later
// On each slice: what its content comes to, whatever the generation. The server may leave out
// fields of features that are off, so what it gives back is not what it was given.
inline constexpr char kContentAnnotation[] = "vfio-agent/content";

// Units that the API server may still give to claims, since this node's slices there have, or may
// have, them untainted.
struct SlicedUnits {
  bool known = true;  // false: what an earlier agent has left there may be any
  std::set<std::string> units;
  bool MayHave(const std::string& unit) const { return !known || units.contains(unit); }
};

// One pool for each node, which has the node's name.
struct SlicePool {
  std::string driver = kDefaultDraDriver;
  std::string node;
  std::string node_uid;    // empty: not known, and the slices belong to no Node
  int64_t generation = 1;  // of what is published together
};

// The objects as they are to stand in the API server, none for no device. No slice has more
// devices, counters or counter sets than it may have; devices that share a group consume the same
// counter, whose sets are in slices of their own (as Kubernetes 1.35 and later want it).
std::vector<Json> MakeSlices(const SlicePool& pool, const std::vector<DraDevice>& devices);

// "64Gi": bytes as Kubernetes spells them.
std::string Quantity(uint64_t bytes);

}  // namespace vfio_agent
