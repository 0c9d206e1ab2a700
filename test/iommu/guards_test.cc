// One test for each guard: who uses what, and what it keeps the agent from.
#include <algorithm>
#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kAudio[] = "0000:3b:00.1";

// A node with one card that may be taken, after an inquiry that found nothing against it.
struct OneGpu {
  NodeFacts facts = Node({Gpu(kGpu, 17), Audio(kAudio, 17)});
  Custody custody = Asked();
  Policy policy = DefaultPolicy();

  Plan Make() const { return MakePlan(facts, policy, TestNames(), custody); }
  std::string Refusals() const { return Codes(Make().refusals); }
  std::string Warnings() const { return Codes(Make().warnings); }
  Inquiry& inquiry() { return *custody.inquiry; }
};

TEST_CASE("a card that nobody uses is bound", "[iommu]") {
  const OneGpu node;
  CHECK(node.Refusals().empty());
  CHECK(node.Warnings().empty());
  CHECK(GroupOf(node.Make(), 17).verdict == Verdict::kBind);
}

TEST_CASE("what the host uses is refused before the first write, each use by its code", "[iommu]") {
  struct Row {
    UseKind kind;
    const char* code;
  };
  const Row row =
      GENERATE(Row{UseKind::kNetwork, "in-use-network"}, Row{UseKind::kStorage, "in-use-storage"},
               Row{UseKind::kDisplay, "in-use-display"}, Row{UseKind::kProcess, "in-use-holder"},
               Row{UseKind::kManager, "foreign-manager"});
  OneGpu node;
  node.inquiry().use.devices[At(kAudio)] = {{row.kind, "carries eth0", ""}};
  CHECK(node.Refusals() == std::string(row.code) + " 0000:3b:00.1");
  CHECK(GroupOf(node.Make(), 17).actions.empty());
  CHECK(node.Make().refusals[0].text ==
        "0000:3b:00.1 (10de:22ba, driver snd_hda_intel) carries eth0");
  SECTION("unless an operator has overruled it for that very address, which is said") {
    node.policy.guard_override = {At(kAudio)};
    CHECK(node.Refusals().empty());
    CHECK(node.Warnings() == std::string(row.code) + " 0000:3b:00.1");
    CHECK_THAT(node.Make().warnings[0].text, Catch::Contains("overruled by guard.override"));
    CHECK(GroupOf(node.Make(), 17).verdict == Verdict::kBind);
  }
  SECTION("and another address does not overrule it") {
    node.policy.guard_override = {At(kGpu)};
    CHECK(node.Refusals() == std::string(row.code) + " 0000:3b:00.1");
  }
}

TEST_CASE("the remedy of a use is the one that fits it", "[iommu]") {
  OneGpu node;
  node.inquiry().use.devices[At(kGpu)] = {
      {UseKind::kProcess, "is open", "systemctl stop nvidia-persistenced"},
      {UseKind::kProcess, "is open too", ""}};
  const Plan plan = node.Make();
  CHECK(plan.refusals.at(0).remedy == "systemctl stop nvidia-persistenced");
  CHECK(plan.refusals.at(1).remedy == DefaultRemedy(Code::kInUseHolder));
}

TEST_CASE("where not all processes can be seen the holders are unknown, not none", "[iommu]") {
  OneGpu node;
  node.inquiry().use.processes_known = false;
  CHECK(node.Refusals().empty());
  CHECK(node.Warnings() == "in-use-holder 0000:3b:00.0\nin-use-holder 0000:3b:00.1");
}

TEST_CASE("a driver_override that somebody else has set is a claim", "[iommu]") {
  OneGpu node;
  node.inquiry().overrides[At(kGpu)] = Fact<std::string>("nvidia");
  CHECK(node.Refusals() == "foreign-manager 0000:3b:00.0");
  CHECK_THAT(node.Make().refusals[0].text, Catch::Contains("'nvidia'"));
  SECTION("not where it is this agent's, on the way back") {
    node.custody.records = TakenFrom({{kGpu, "nvidia"}});
    node.custody.records.begin()->second.step = "probe";
    CHECK(node.Refusals().empty());
  }
  SECTION("not where it asks for a vfio driver, as driverctl leaves it") {
    node.inquiry().overrides[At(kGpu)] = Fact<std::string>("vfio-pci");
    CHECK(node.Refusals().empty());
    CHECK(node.Warnings().empty());
  }
  SECTION("not where there is none") {
    node.inquiry().overrides[At(kGpu)] = Fact<std::string>("(null)");
    CHECK(node.Refusals().empty());
  }
  SECTION("and may be overruled") {
    node.policy.guard_override = {At(kGpu)};
    CHECK(node.Warnings() == "foreign-manager 0000:3b:00.0");
  }
}

TEST_CASE("a driver_override whose read does not return is the sign of a stuck write", "[iommu]") {
  OneGpu node;
  node.inquiry().overrides[At(kGpu)] = Fact<std::string>::Unknown(110);
  CHECK(node.Refusals() == "unbind-stuck 0000:3b:00.0");
}

TEST_CASE("BIND-07: an override left on a device without a driver is ours by the journal, or told",
          "[iommu]") {
  OneGpu node;
  Find(node.facts, kGpu).driver = std::nullopt;
  node.inquiry().overrides[At(kGpu)] = Fact<std::string>("vfio-pci");
  CHECK(node.Refusals().empty());
  CHECK(node.Warnings() == "foreign-manager 0000:3b:00.0");
  node.custody.records = TakenFrom({{kGpu, "nvidia"}});
  node.custody.records.begin()->second.step = "probe";
  node.custody.records.begin()->second.members = {At(kGpu), At(kAudio)};
  CHECK(node.Warnings().empty());
}

TEST_CASE("a group with a write that has not returned is withdrawn", "[iommu]") {
  OneGpu node;
  node.custody.underway.stuck[17] = {At(kGpu), "echo 0000:3b:00.0 > /sys/x", "nv_pci_remove"};
  node.custody.inquiry = std::nullopt;  // nobody looks further
  CHECK(node.Refusals() == "unbind-stuck 0000:3b:00.0");
  CHECK_THAT(node.Make().refusals[0].text,
             Catch::Contains("echo 0000:3b:00.0 > /sys/x") && Catch::Contains("nv_pci_remove"));
}

// A group that a guest had, whose audio function somebody has taken back for the host.
struct Drifted : OneGpu {
  Drifted() {
    Find(facts, kGpu).driver = "vfio-pci";
    facts.vfio_nodes.insert("17");
    custody.records = TakenFrom({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}});
    for (auto& entry : custody.records) entry.second.members = {At(kGpu), At(kAudio)};
  }
  Unit TheUnit() const { return Make().resources.at(0).units.at(0); }
};

TEST_CASE("a member that somebody has rebound makes the unit unhealthy, and is taken back",
          "[iommu]") {
  const Drifted node;
  CHECK(GroupOf(node.Make(), 17).verdict == Verdict::kBind);
  CHECK(node.TheUnit().state == UnitState::kUnhealthy);
  CHECK(node.TheUnit().reason ==
        "driver-changed: 0000:3b:00.1 (10de:22ba, driver snd_hda_intel) is not on vfio-pci any "
        "more");
}

TEST_CASE("a held group is not healed, but its unit stays in the list", "[iommu]") {
  Drifted node;
  SECTION("a process has it open") {
    node.inquiry().use.groups[17] = {{.pid = 4711, .command = "qemu-system-x86"}};
    CHECK_THAT(node.Make().refusals.at(0).text, Catch::Contains("pid 4711 (qemu-system-x86)"));
  }
  SECTION("a pod has it") {
    node.inquiry().claims.list = {{"shop", "vm", "compute", "nvidia.com/X", kGpu}};
    CHECK_THAT(node.Make().refusals.at(0).text, Catch::Contains("pod shop/vm"));
  }
  SECTION("the kubelet does not say who has it") {
    node.inquiry().claims = {.known = false, .why_unknown = "it does not answer"};
    CHECK_THAT(node.Make().refusals.at(0).text, Catch::Contains("it does not answer"));
  }
  CHECK(node.Refusals() == "held");
  CHECK(GroupOf(node.Make(), 17).actions.empty());
  CHECK(node.TheUnit().state == UnitState::kUnhealthy);
}

TEST_CASE(
    "what the kubelet says of devices that were not ours in this boot holds nothing: they "
    "are bound again after a reboot",
    "[iommu]") {
  OneGpu node;
  node.custody.records = TakenFrom({{kGpu, "nvidia"}});
  node.inquiry().claims.list = {{"shop", "vm", "compute", "nvidia.com/X", kGpu}};
  CHECK(node.Refusals() == "held");
  node.custody.records.begin()->second.this_boot = false;
  CHECK(node.Refusals().empty());
}

TEST_CASE("a group that has all it needs is not asked about, held or not", "[iommu]") {
  Drifted node;
  Find(node.facts, kAudio).driver = "vfio-pci";
  CHECK(node.Make().question.empty());
  node.inquiry().use.groups[17] = {{.pid = 4711, .command = "qemu-system-x86"}};
  CHECK(node.Refusals().empty());
  CHECK(node.TheUnit().state == UnitState::kReady);
}

TEST_CASE("IOMMU-08: a group that the kernel groups otherwise than before is told, with both lists",
          "[iommu]") {
  OneGpu node;
  node.custody.records = TakenFrom({{kGpu, "nvidia"}});
  Record& record = node.custody.records.begin()->second;
  record.group = 11;
  record.members = {At(kGpu)};
  record.this_boot = false;
  CHECK(node.Warnings() == "group-changed 0000:3b:00.0");
  CHECK(node.Make().warnings[0].text ==
        "the group of 0000:3b:00.0 was 11 {0000:3b:00.0} when the device was taken, and is 17 "
        "{0000:3b:00.0 0000:3b:00.1} now");
  record.members = {At(kGpu), At(kAudio)};
  CHECK(node.Warnings().empty());
}

TEST_CASE("a draft asks about everything that would be touched, refused or not", "[iommu]") {
  OneGpu node;
  node.custody.inquiry = std::nullopt;
  node.facts.groups.at(17).direct_reserved = true;
  const Question question = node.Make().question;
  CHECK(question.groups == std::vector<int>{17});
  CHECK(question.unbound == std::vector<PciAddress>{At(kGpu), At(kAudio)});
  CHECK(question.overridden == question.unbound);
}

TEST_CASE("a draft asks about groups whose plan was cut off", "[iommu]") {
  OneGpu node;
  node.policy = {};
  CHECK(node.Make().question.empty());
  node.custody.records = TakenFrom({{kGpu, "nvidia"}});
  node.custody.records.begin()->second.step = "unbind";
  CHECK(node.Make().question.groups == std::vector<int>{17});
}

TEST_CASE("POWR-01: members are kept out of D3cold from before they are bound", "[iommu]") {
  OneGpu node;
  Find(node.facts, kGpu).d3cold_allowed = Fact<bool>(true);
  Find(node.facts, kAudio).d3cold_allowed = Fact<bool>(false);
  const auto actions = GroupOf(node.Make(), 17).actions;
  CHECK(actions.at(0) == Action{SetD3cold{At(kGpu), false}});
  CHECK(std::ranges::count_if(actions, [](const Action& action) {
          return std::holds_alternative<SetD3cold>(action);
        }) == 1);
}

TEST_CASE("a device's record keeps what it was before the first of this boot's binds", "[iommu]") {
  PciDevice gpu = Gpu(kGpu, 17);
  gpu.d3cold_allowed = Fact<bool>(true);
  const Record first = MakeRecord(gpu, {At(kGpu)}, "", "vfio-pci", nullptr, "boot");
  CHECK(first.driver == "nvidia");
  CHECK(first.d3cold_allowed == true);
  // Cut off half-way: without a driver, kept out of D3cold, with our own override.
  gpu.driver = std::nullopt;
  gpu.d3cold_allowed = Fact<bool>(false);
  const Record second = MakeRecord(gpu, {At(kGpu)}, "vfio-pci", "vfio-pci", &first, "boot");
  CHECK(second.driver == "nvidia");
  CHECK(second.driver_override.empty());
  CHECK(second.d3cold_allowed == true);
  // Rebound by somebody: that is where it goes back to.
  gpu.driver = "nouveau";
  CHECK(MakeRecord(gpu, {}, "vfio-pci", "vfio-pci", &first, "boot").driver == "nouveau");
  Record old = first;
  old.this_boot = false;
  gpu.driver = std::nullopt;
  CHECK(MakeRecord(gpu, {}, "", "vfio-pci", &old, "boot").driver.empty());
}

TEST_CASE("a group can be a pod's still after the one member on vfio-pci has left the bus",
          "[iommu]") {
  NodeFacts facts =
      Node({Gpu("0000:3b:00.0", 17, "nvidia"), Audio("0000:3b:00.1", 17, "vfio-pci")});
  Custody custody = Asked();
  NoteBound(facts, custody.seen_bound);
  std::erase_if(facts.devices,
                [](const PciDevice& device) { return device.address == At("0000:3b:00.1"); });
  CHECK(CanBeHeld(custody, facts, 17));
}

}  // namespace
}  // namespace vfio_agent
