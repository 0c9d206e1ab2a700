// Explanation: all that there is to say about one group, or about a device without one, as values.
// Text and document are made of the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/session.h"
#include "agent/text/json.h"
#include "iommu/isolation/isolation.h"
#include "iommu/isolation/relocation.h"

namespace vfio_agent {

// One port or function on the way from the root to a device.
struct PathStep {
  PciAddress address;
  std::string id;    // "8086:352a"
  std::string type;  // "root port"
  AcsState acs;
  std::string words;    // of its ACS, and why that is not known
  std::string bits;     // "SrcValid+ ReqRedir-" as lspci's ACSCtl; empty where there are none
  bool merges = false;  // it is why members of this group are together
};
struct DevicePath {
  PciAddress device;
  std::string root;  // "pci0000:00"; empty where the tree tells no parents
  std::vector<PathStep> steps;
};

struct MemberNote {
  Member member;
  std::string model;  // else the class in words
  bool blocks = false;
  std::vector<std::string> uses;  // what the host does with it: "carries eth0, …"
  std::vector<std::string> errors;
  std::vector<std::string> holders;  // pods and claims that have it: "pod team/vm …, as …"
  std::string sriov;  // "virtual function of 0000:0b:00.0", "physical function with 2 of 4 …"
};

// What the plan would be if the configuration selected this device, by its address; or a virtual
// function's physical function, for the sake of its virtual functions. kUnselected: an entry of
// mdev[] or vgpu[] keeps it from resources[].
struct IfSelected {
  PciAddress device;
  std::optional<PciAddress> physical;
  Verdict verdict = Verdict::kRefused;
  std::vector<Refusal> refusals;
  std::string mode;  // the one in force, where that gives no whole devices away; else empty
};

// An instance on a member of the group.
struct MdevNote {
  MdevInstance mdev;
  bool own = false;      // made by this program
  std::string resource;  // as which it is offered; empty for none
  std::string state;
  std::vector<std::string> holders;
};

// A unit that has a member of the group, or goes with it.
struct UnitNote {
  std::string id, resource, state;
  std::string who;  // WhoOrWhy() of it, in full
};

struct MergeNote {
  std::string text;     // of ExplainMerge()
  bool bridge = false;  // it is a bridge that is in the group for this reason
};

struct Explanation {
  GroupPlan plan;          // of a device without a group: itself and its slot, unselected
  bool by_claims = false;  // of the resource: `serve: dra`
  std::vector<MemberNote> members;
  std::vector<MergeNote> merges;
  std::vector<MdevNote> mdevs;
  std::vector<UnitNote> units;      // PCI functions alone
  std::string why_unreadable;       // what keeps registers from being read, where some are not
  std::vector<PciAddress> unknown;  // whose ACS on the way to the root is not known
  std::vector<DevicePath> paths;    // one for each member, in their order
  std::optional<IfSelected> if_selected;
  // Without an IOMMU: who would be together if it were on; nullopt where that cannot be told.
  bool without_iommu = false;
  std::optional<std::vector<PciAddress>> expected;
  std::optional<Relocation> relocation;  // where others are in the group
  std::vector<std::string> look;         // commands that show more
  std::vector<std::string> memory;       // regions of Extended GPU Memory of members: who gets them
};

// What an explanation needs of the node. `uses` are those of members that nobody selected.
struct Surroundings {
  const Picture& picture;
  const Grouping& grouping;
  const UseFacts& uses;
  std::optional<IfSelected> if_selected;
  bool copy = false;  // another root than the host's: what is not there nobody can read
};
Explanation Explain(const Surroundings& around, const GroupPlan& group);

// The plan of a device that has no group and that nobody selected.
GroupPlan LonePlan(const NodeFacts& facts, const PciDevice& device);

// The endpoints that a question about `group` is about, the asked one first where it is a member.
std::optional<PciAddress> SubjectOf(const GroupPlan& group, const std::optional<PciAddress>& asked);

// How units are given away that are not the device plugin's, a word behind a resource.
inline constexpr char kByClaims[] = "served by claims (serve: dra)";

std::string ExplanationText(const Explanation& explanation);
// An item of `groups` of vfio-agent/explain/v1.
Json ExplanationToJson(const Explanation& explanation);

// words.cc: "root port" and the like; and why two functions share a group, a sentence.
std::string PortWords(const PciDevice& device);
std::string ExplainMerge(const NodeFacts& facts, const Merge& merge);
// `ready`: nothing is to be said of its units.
std::string VerdictWords(const GroupPlan& group, bool ready);
std::string ControlBits(const PciDevice& device);
// Why nothing is to be bound of a group that no entry gives away; empty for a physical function
// that gives its virtual ones away.
std::vector<Refusal> WhyUnselected(const NodeFacts& facts, const Policy& policy,
                                   const GroupPlan& group);

}  // namespace vfio_agent
