// A whole node, in the words of node_text.h: read, then planned under two policies.
#include "iommu/plan/plan.h"
#include "iommu/policy/naming.h"
#include "sysfs/device/config_space.h"
#include "sysfs/node_facts.h"
#include "sysfs/tree.h"
#include "test/fuzz/device_rules.h"
#include "test/fuzz/node_text.h"
#include "test/fuzz/plan_rules.h"
#include "test/fuzz/require.h"
#include "test/fuzz/scratch.h"

namespace vfio_agent {
namespace {

// Takes all that can be taken: every endpoint of two vendors, strangers in a group included.
Policy GreedyPolicy() {
  ResourceRule all;
  all.select = {{.vendor = uint16_t{0x10de}}, {.vendor = uint16_t{0x8086}}};
  all.exclude = {{.classes = {"0601"}}};
  all.companions = Companions::kListed;
  all.companion_list = {{.classes = {"0403"}}};
  all.allow_members = {{.classes = {"01", "0c"}}};
  all.shared_group = SharedGroup::kUnit;
  ResourceRule vfs;
  vfs.select = {{.vendor = uint16_t{0x15b3}}};
  vfs.sriov = Sriov{.vfs = 2};
  return {.resources = {all, vfs},
          .aliases = {{"10de:2330", "H100"}},
          .guard_override = {*PciAddress::Parse("0000:3b:00.0")}};
}

absl::StatusOr<NodeFacts> Take(const Tree& tree) {
  ConfigReader config(tree);
  return TakeNodeFacts(tree, config, ReadModuleFacts(tree));
}

void Check(std::string_view text) {
  const std::string root = FreshRoot();
  MakeNode(text, root);
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  Require(tree.ok(), "the root can be opened");
  const absl::StatusOr<NodeFacts> facts = Take(*tree);
  if (!facts.ok()) return RequireError(facts.status(), absl::StatusCode::kFailedPrecondition);
  for (const PciDevice& device : facts->devices) RequireSoundDevice(device);
  Require(*Take(*tree) == *facts, "the same files give the same facts");
  for (const Policy& policy : {DefaultPolicy(), GreedyPolicy()}) {
    const Plan plan = MakePlan(*facts, policy, OwnModels());
    RequireSoundPlan(*facts, plan);
    Require(MakePlan(*facts, policy, OwnModels()) == plan, "the same facts give the same plan");
  }
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  return 0;
}
