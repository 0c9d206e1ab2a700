// vGPU types on their way: written, read back, journalled, taken away.
#include <catch2/catch.hpp>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "iommu/apply.h"
#include "iommu/plan/made_vfs.h"
#include "sysfs/status.h"
#include "sysfs/writer.h"
#include "test/iommu/vgpu_nodes.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kClear[] = "echo 0 > /sys/bus/pci/devices/0000:41:00.4/nvidia/current_vgpu_type";

NodeFacts WithType(int type = 1145) {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, type);
  Find(facts, kA4).vfio_cdev = "vfio0";
  return facts;
}

std::string Cleared(const NodeFacts& facts, const Custody& custody) {
  std::string text;
  for (const GroupRelease& release : PlanRelease(facts, custody, {At(kA4)})) {
    text += Shell(release.actions) + Codes(release.refusals);
  }
  return text;
}

TEST_CASE("VGPU: release takes away the type that this agent has set, and no driver", "[vgpu]") {
  CHECK(Cleared(WithType(), Asked(Given({kA4}))) == kClear);
}

TEST_CASE("VGPU: release leaves the types of others", "[vgpu]") {
  CHECK(PlanRelease(WithType(), Asked(), {At(kA4)}).empty());
  // Somebody has changed it since: the journal alone is put right.
  CHECK(Cleared(WithType(1153), Asked(Given({kA4}))).empty());
  // Its write had not begun.
  CHECK(Cleared(WithType(), Asked(Given({kA4}, 1145, kStepNoted))).empty());
  Records earlier = Given({kA4});
  earlier.begin()->second.this_boot = false;
  CHECK(PlanRelease(WithType(), Asked(earlier), {At(kA4)}).empty());
}

TEST_CASE("VGPU: a function that was on vfio-pci and is a vGPU now keeps its driver", "[vgpu]") {
  Records records = Given({kA4});
  records.begin()->second.vgpu_type.reset();
  CHECK(Cleared(WithType(), Asked(records)) ==
        "echo > /sys/bus/pci/devices/0000:41:00.4/driver_override");
}

TEST_CASE("VGPU: release leaves what somebody has", "[vgpu]") {
  Custody custody = Asked(Given({kA4}));
  SECTION("a process") { custody.inquiry->use.groups[20] = {{.pid = 4242, .command = "qemu-kvm"}}; }
  SECTION("a pod") {
    custody.inquiry->claims.list = {{.pod = "vm", .resource = kOneB, .unit = kA4}};
  }
  SECTION("a pod to be") {
    custody.tenancy = Tenancy{};
    custody.tenancy->grants = {{.resource = kOneB, .unit = kA4, .group = 20}};
  }
  CHECK(Cleared(WithType(), custody) == "held 0000:41:00.4");
}

TEST_CASE("VGPU: also without cdevs a vGPU of others counts as given", "[vgpu]") {
  NodeFacts facts = WithType();
  Find(facts, kA4).vfio_cdev.reset();
  Custody custody = Asked();
  CHECK(CanBeHeld(custody, facts, 20));
  CHECK_FALSE(CanBeHeld(custody, facts, 21));
  std::set<PciAddress> seen;
  NoteBound(facts, seen);
  CHECK(seen == std::set<PciAddress>{At(kA4)});
}

TEST_CASE("VGPU: what was cut off is finished or put back", "[vgpu]") {
  const NodeFacts facts = WithType();
  const Records begun = Given({kA4}, 1145, "set-vgpu-type");
  const Plan wanted = PlanFor(facts, WantingVgpus({{"1145", 1}}), Asked(begun));
  CHECK(FinishedRecords(begun, wanted).size() == 1);
  CHECK(PlanRecovery(facts, Asked(begun), wanted).empty());
  const Plan unwanted = PlanFor(facts, WantingVgpus({{"1153", 0}}), Asked(begun));
  CHECK(Shell(GroupOf(unwanted, 20).actions) == kClear);
  CHECK(PlanRecovery(facts, Asked(begun), unwanted).empty());
  const auto back = PlanRecovery(facts, Asked(begun), PlanFor(facts, DefaultPolicy()));
  REQUIRE(back.size() == 1);
  CHECK(Shell(back[0].actions) == kClear);
  // Somebody else was first: only the journal forgets.
  const Records noted = Given({kA4}, 1145, kStepNoted);
  const Plan theirs = PlanFor(facts, WantingVgpus({{"1145", 1}}), Asked(noted));
  CHECK(FinishedRecords(noted, theirs).empty());
  CHECK(PlanRecovery(facts, Asked(noted), theirs).at(0).actions.empty());
}

TEST_CASE("VGPU: a type whose node does not come is taken away again", "[vgpu]") {
  Records records = Given({kA4}, 1145, kStepNoted);
  CHECK(PlanUndo(WithType(), records, {At(kA4)}).empty());
  const std::vector<Action> done = {SetVgpuType{At(kA4), 1145, "NVIDIA L40S-1B"}};
  NoteMadeVfs(done, records);
  CHECK(Shell(PlanUndo(WithType(), records, {At(kA4)})) == kClear);
}

// Notes what is written; the tree says what came of it.
struct Notes final : Writer {
  absl::Status Write(std::string_view path, std::string_view text) override {
    log.push_back(absl::StrFormat("%s <- %s", path, text));
    return absl::OkStatus();
  }
  absl::Status LoadModule(std::string_view) override { return absl::OkStatus(); }
  std::vector<std::string> log;
};

// One virtual function, and a kernel to write to.
struct Bench {
  Bench() { fake.Add({.address = kA4, .driver = "nvidia", .group = 20}); }
  Outcome Set(int type, const std::string& then) {
    fake.Write(FakeTree::Of(kA4, "nvidia/current_vgpu_type"), then);
    const std::vector<Action> steps = {SetVgpuType{At(kA4), type, ""}};
    return Apply(steps, fake.Open(), notes, absl::ZeroDuration(),
                 [](size_t) { return absl::OkStatus(); });
  }
  FakeTree fake;
  Notes notes;
};

TEST_CASE("VGPU: the type is read back after its write", "[vgpu]") {
  Bench bench;
  CHECK(bench.Set(1145, "1145\n").status.ok());
  CHECK(bench.notes.log ==
        std::vector<std::string>{
            "sys/bus/pci/devices/0000:41:00.4/nvidia/current_vgpu_type <- 1145"});
  CHECK_THAT(std::string(bench.Set(1145, "0\n").status.message()), Catch::Contains("is not 1145"));
}

TEST_CASE("VGPU: what the driver says of a type becomes a code", "[vgpu]") {
  const Action set = SetVgpuType{At(kA4), 1145, "x"}, clear = SetVgpuType{At(kA4), 0, ""};
  const auto code = [](const Action& action, int error) {
    return CodeOfFailure(action, ErrnoStatus(error, "write"));
  };
  CHECK(code(set, EPERM) == Code::kProbeRefused);
  CHECK(code(set, EIO) == Code::kProbeRefused);
  CHECK(code(clear, EPERM) == Code::kHeld);
  CHECK(code(clear, EBUSY) == Code::kHeld);
  CHECK(code(set, EACCES) == Code::kPermissionDenied);
  CHECK(code(set, ENODEV) == Code::kDeviceGone);
}

}  // namespace
}  // namespace vfio_agent
