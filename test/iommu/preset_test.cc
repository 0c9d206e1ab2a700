#include "iommu/policy/preset.h"

#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "iommu/policy/naming.h"
#include "sysfs/proc_text.h"
#include "sysfs/use/process_use.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kSlot[] = "0000:65:00.0";

Plan PlanBy(const std::string& preset, const NodeFacts& facts) {
  const Preset* const row = FindPreset(preset);
  REQUIRE(row != nullptr);
  return MakePlan(facts, {.resources = {RuleOf(*row)}}, TestNames());
}

// The resource of one device by that preset; "" where it is not selected.
std::string Named(const std::string& preset, const std::string& id, uint32_t class_code) {
  const Plan plan = PlanBy(preset, Node({Function(kSlot, 7, "", id, class_code)}));
  return plan.resources.empty() ? "" : plan.resources.front().name;
}

TEST_CASE("a preset selects what its vendor makes for guests, named in the vendor's domain",
          "[iommu]") {
  struct Row {
    const char* preset;
    const char* id;
    uint32_t class_code;
    const char* resource;
  };
  const auto row = GENERATE(Row{"nvidia", "10de:2330", 0x030200, "nvidia.com/GH100_H100_SXM5_80GB"},
                            Row{"nvidia", "10de:fffe", 0x030000, "nvidia.com/fffe"},
                            Row{"amd", "1002:74a1", 0x120000, "amd.com/74a1"},      // MI300X
                            Row{"amd", "1002:740f", 0x038000, "amd.com/740f"},      // MI210
                            Row{"amd", "1002:738c", 0x030200, "amd.com/738c"},      // MI100
                            Row{"intel", "8086:56c0", 0x038000, "intel.com/56c0"},  // Flex
                            Row{"intel", "8086:0bd5", 0x038000, "intel.com/0bd5"},  // Max
                            Row{"intel", "1da3:1020", 0x120000, "intel.com/1020"},  // Gaudi
                            Row{"rebellions", "1eff:1220", 0x120000, "rebellions.ai/1220_PT"},
                            Row{"nvme", "144d:a80a", 0x010802, "nvme.internal/a80a"},
                            Row{"nvme", "1e0f:0013", 0x010802, "nvme.internal/0013"},
                            Row{"mellanox", "15b3:1021", 0x020700, "mellanox.com/1021"},
                            Row{"mellanox", "15b3:101d", 0x020000, "mellanox.com/101d"});
  CAPTURE(row.preset, row.id);
  CHECK(Named(row.preset, row.id, row.class_code) == row.resource);
}

TEST_CASE("a preset leaves alone what is the host's, or another vendor's", "[iommu]") {
  struct Row {
    const char* preset;
    const char* id;
    uint32_t class_code;
  };
  const auto row =
      GENERATE(Row{"nvidia", "10de:22a3", 0x068000},  // an NVSwitch
               Row{"nvidia", "1002:74a1", 0x030200},
               Row{"amd", "1002:67df", 0x030000},    // a Radeon, which may be somebody's display
               Row{"amd", "1002:ab28", 0x040300},    // its audio function
               Row{"intel", "8086:7d1d", 0x120000},  // the NPU of a desktop processor
               Row{"intel", "8086:56a0", 0x030000},  // an Arc
               Row{"intel", "8086:159b", 0x020000},  // an adapter
               Row{"rebellions", "1eff:1220", 0x030200},
               Row{"nvme", "144d:a80a", 0x010601},       // a SATA controller
               Row{"mellanox", "15b3:c2d5", 0x080100});  // the DMA function of a BlueField
  CAPTURE(row.preset, row.id);
  CHECK(Named(row.preset, row.id, row.class_code).empty());
}

TEST_CASE("SRIOV-04: by no preset is Intel's own adapter taken, nor without one", "[iommu]") {
  // Where another card is the boot display, the processor's is no VGA controller.
  const auto class_code = GENERATE(0x030000u, 0x038000u);
  const NodeFacts facts = Node({Function("0000:00:02.0", 1, "i915", "8086:4680", class_code)});
  CHECK(DefaultPlan(facts).resources.empty());
  CHECK(PlanBy("intel", facts).resources.empty());
}

TEST_CASE("SRIOV-04: an Intel accelerator that the host uses, or that has VFs, is never taken",
          "[iommu]") {
  NodeFacts facts = Node({Function(kSlot, 1, "xe", "8086:56c0", 0x038000)});
  SECTION("in use") {
    Custody custody = Asked();
    custody.inquiry->use.devices[At(kSlot)] = {{UseKind::kDisplay, "shows the console", ""}};
    const Plan plan = MakePlan(facts, {.resources = {RuleOf(*FindPreset("intel"))}}, {}, custody);
    CHECK(Codes(plan.refusals) == "in-use-display 0000:65:00.0");
    CHECK(GroupOf(plan, 1).actions.empty());
  }
  SECTION("with VFs") {
    Find(facts, kSlot).virtfns = {At("0000:65:00.1")};
    CHECK(Codes(PlanBy("intel", facts).refusals) == "pf-has-vfs 0000:65:00.0");
  }
}

TEST_CASE("it is known what to do about each of a preset's holders", "[iommu]") {
  for (const Preset& preset : Presets()) {
    CAPTURE(preset.name);
    CHECK_FALSE(preset.note.empty());
    CHECK_FALSE(Fields(preset.holders).empty());
    for (const std::string_view holder : Fields(preset.holders)) {
      CAPTURE(holder);
      CHECK(KnownHolderStart(holder) == holder);
      const std::vector<Use> uses =
          ProcessUses(At(kSlot), {{{.pid = 7, .command = std::string(holder), .node = "/dev/x"}}});
      REQUIRE(uses.size() == 1);
      CHECK_FALSE(uses.front().remedy.empty());
    }
  }
}

TEST_CASE("the built-in policy is NVIDIA's preset", "[iommu]") {
  Policy policy = DefaultPolicy();
  REQUIRE(policy.resources.size() == 1);
  policy.resources[0].preset = "nvidia";
  CHECK(policy.resources[0] == RuleOf(*FindPreset("nvidia")));
  CHECK(FindPreset("nvidea") == nullptr);
}

TEST_CASE("a suffix is behind aliases and models too, and a long model gives way to it",
          "[iommu]") {
  const PciDevice device = Function(kSlot, 7, "", "1eff:1220", 0x120000);
  ResourceRule rule = RuleOf(*FindPreset("rebellions"));
  CHECK(ResourceName(rule, device, {.aliases = {{"1eff:1220", "ATOM"}}}, {}) ==
        "rebellions.ai/ATOM_PT");
  const std::string name =
      ResourceName(rule, device, {}, {{{0x1eff, 0x1220}, std::string(80, 'a')}});
  CHECK(name == "rebellions.ai/" + std::string(60, 'A') + "_PT");
  CHECK(CheckResourceName(name).ok());
  rule.name = "example.org/npu";  // as it was written
  CHECK(ResourceName(rule, device, {}, {}) == "example.org/npu");
}

}  // namespace
}  // namespace vfio_agent
