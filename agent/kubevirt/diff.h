// Compares what a file says to KubeVirt with what this node serves: what would not start, and why.
#pragma once

#include <string>
#include <vector>

#include "agent/kubevirt/file.h"
#include "agent/kubevirt/kubevirt.h"

namespace vfio_agent {

struct Difference {
  std::string code;      // "entry-missing"; the list is in the operator's guide
  bool hinders = false;  // false: a note
  std::string where;     // in the file; empty where something is missing
  std::string text;
  std::string remedy;
  bool operator==(const Difference&) const = default;
};

// A resource of this node, a resource that only the file has, or a machine of the file.
struct Compared {
  enum class Kind { kServed, kElsewhere, kMachine };
  Kind kind = Kind::kServed;
  std::string name;
  std::vector<Difference> findings;
  bool Starts() const;
  bool operator==(const Compared&) const = default;
};

// The entries that the resources of `asked` need, and every machine of the file against all of
// `node`. Where `asked` is a part of it, the file's other entries are not looked at.
std::vector<Compared> CompareWithFile(const Served& asked, const Served& node,
                                      const KubevirtFile& file);

// True where all of it would start.
bool AllStart(const std::vector<Compared>& all);

std::string ComparedText(const std::vector<Compared>& all);
Json ComparedToJson(const std::vector<Compared>& all);

}  // namespace vfio_agent
