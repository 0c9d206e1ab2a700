#include "agent/work/executor.h"

#include <catch2/catch.hpp>

#include "agent/work/jobs.h"
#include "sysfs/clock.h"
#include "test/agent/program.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";

// A bind that was planned while nvidia had the GPU.
struct Planned {
  FakeTree fake;
  ScratchDir dir;
  Journal journal{dir.path(), "boot"};
  Job job{.group = 17,
          .actions = {SetOverride{At(kGpu), "vfio-pci"}, Unbind{At(kGpu), "nvidia"},
                      Probe{At(kGpu), "vfio-pci"}}};

  explicit Planned(const std::string& driver_now) {
    fake.Add({.address = kGpu, .driver = driver_now, .group = 17});
    job.records[At(kGpu)] = {.address = At(kGpu), .boot_id = "boot", .this_boot = true};
  }
  Execution Run() {
    const Tree tree = fake.Open();
    return Execute(job, tree, journal, absl::Seconds(1), [](size_t) {});
  }
  size_t Records() const {
    std::vector<Journal::Unreadable> unreadable;
    return journal.Read(unreadable)->size();
  }
  std::string Override() const { return fake.Read(FakeTree::Of(kGpu, "driver_override")); }
};

TEST_CASE("a plan whose device has moved since is not begun: no record, no write", "[agent]") {
  Planned plan(GENERATE("vfio-pci", "nouveau"));
  const std::string before = plan.Override();
  const Execution execution = plan.Run();
  CHECK(absl::IsAborted(execution.outcome.status));
  CHECK_THAT(std::string(execution.outcome.status.message()),
             Catch::Contains("nothing was written"));
  CHECK(execution.outcome.done == 0);
  CHECK(plan.Records() == 0);
  CHECK(plan.Override() == before);
  CHECK(CodeOfFailure(plan.job.actions[0], execution.outcome.status) == Code::kDriverChanged);
}

TEST_CASE("VFs that somebody else has made meanwhile are not touched: no record, no write",
          "[agent]") {
  Planned plan("nvidia");
  plan.fake.Attribute(kGpu, "sriov_drivers_autoprobe", "1").Attribute(kGpu, "sriov_numvfs", "2");
  plan.fake.Add({.address = "0000:3b:00.1", .group = 18});
  plan.fake.Link(FakeTree::Of(kGpu, "virtfn0"), "sys/bus/pci/devices/0000:3b:00.1");
  plan.job.actions = {SetAutoprobe{At(kGpu), false}, SetVfs{At(kGpu), 2}};
  const Execution execution = plan.Run();
  CHECK(execution.code == Code::kPfHasVfs);
  CHECK_THAT(std::string(execution.outcome.status.message()),
             Catch::Contains("nothing was written"));
  CHECK(plan.Records() == 0);
  CHECK(plan.fake.Read(FakeTree::Of(kGpu, "sriov_drivers_autoprobe")).starts_with("1"));
}

TEST_CASE("VGPU: a type that somebody else has set meanwhile is left: no record, no write",
          "[agent]") {
  Planned plan("nvidia");
  const std::string file = FakeTree::Of(kGpu, "nvidia/current_vgpu_type");
  plan.fake.Write(file, "1153\n");
  plan.job.records[At(kGpu)].vgpu_type = 1145;
  SECTION("where one was to be set") { plan.job.actions = {SetVgpuType{At(kGpu), 1145, "x"}}; }
  SECTION("where ours was to be taken away") {
    plan.job.actions = {SetVgpuType{At(kGpu), 0, ""}};
    plan.job.kind = JobKind::kRelease;
  }
  const Execution execution = plan.Run();
  CHECK(execution.code == Code::kDriverChanged);
  CHECK_THAT(std::string(execution.outcome.status.message()),
             Catch::Contains("has the vGPU type 1153 now"));
  CHECK(plan.Records() == 0);
  CHECK(plan.fake.Read(file) == "1153\n");
}

TEST_CASE("VGPU: a type is journalled before it is written", "[agent]") {
  Planned plan("nvidia");
  const std::string file = FakeTree::Of(kGpu, "nvidia/current_vgpu_type");
  plan.fake.Write(file, "0\n");
  plan.job.records[At(kGpu)].vgpu_type = 1145;
  plan.job.actions = {SetVgpuType{At(kGpu), 1145, "x"}};
  REQUIRE(plan.Run().outcome.status.ok());
  CHECK(plan.fake.Read(file).starts_with("1145"));
  std::vector<Journal::Unreadable> unreadable;
  CHECK(HasSetVgpu(plan.journal.Read(unreadable)->begin()->second));
}

// A virtual function whose type cannot be read: the file keeps what stands behind a write to it.
struct UnreadableType : Planned {
  UnreadableType() : Planned("nvidia") {
    fake.Add({.address = "0000:3b:00.4", .driver = "nvidia", .group = 18});
    fake.Link(FakeTree::Of(kGpu, "physfn"), "sys/bus/pci/devices/0000:3b:00.4");
    fake.Write(file, "0 and more\n");
    job.records[At(kGpu)].vgpu_type = 1145;
    job.actions = {SetVgpuType{At(kGpu), 1145, "x"}};
  }
  std::vector<Record> Kept() const {
    std::vector<Journal::Unreadable> unreadable;
    std::vector<Record> kept;
    const auto read = journal.Read(unreadable);
    for (const auto& entry : *read) kept.push_back(entry.second);
    return kept;
  }
  const std::string file = FakeTree::Of(kGpu, "nvidia/current_vgpu_type");
};

TEST_CASE("VGPU: a type that was set but cannot be read back is taken away again, or stays ours",
          "[agent]") {
  UnreadableType plan;
  const Tree tree = plan.fake.Open();
  int steps = 0;
  const bool mends = GENERATE(false, true);
  const Execution execution = Execute(plan.job, tree, plan.journal, absl::Seconds(1), [&](size_t) {
    if (++steps == 2 && mends) plan.fake.Write(plan.file, "1\n");
  });
  CHECK(absl::IsFailedPrecondition(execution.outcome.status));
  CHECK(execution.outcome.done == 0);
  CHECK(steps == 2);
  CHECK(plan.fake.Read(plan.file).starts_with("0"));
  if (mends) {
    CHECK(plan.Kept().empty());
  } else {
    REQUIRE(plan.Kept().size() == 1);
    CHECK(HasSetVgpu(plan.Kept()[0]));
  }
}

TEST_CASE("VFs of one physical function go again where those of the next cannot be made",
          "[agent]") {
  constexpr char kNext[] = "0000:3b:00.4";
  Planned plan("nvidia");
  plan.fake.Attribute(kGpu, "sriov_numvfs", "0");
  plan.fake.Add({.address = kNext, .driver = "nvidia", .group = 17});  // without sriov_numvfs
  plan.job.records[At(kGpu)].vfs = 1;
  plan.job.records[At(kNext)] = {
      .address = At(kNext), .boot_id = "boot", .this_boot = true, .vfs = 1};
  plan.job.actions = {SetVfs{At(kGpu), 1}, SetVfs{At(kNext), 1}};
  const Tree tree = plan.fake.Open();
  std::string made;
  const Execution execution =
      Execute(plan.job, tree, plan.journal, absl::Seconds(1), [&](size_t step) {
        if (step != 1 || !made.empty()) return;
        made = plan.fake.Read(FakeTree::Of(kGpu, "sriov_numvfs"));
        plan.fake.Add({.address = "0000:3b:00.1", .driver = "", .group = 18});
        plan.fake.Link(FakeTree::Of(kGpu, "virtfn0"), "sys/bus/pci/devices/0000:3b:00.1");
      });
  CHECK(execution.outcome.done == 1);
  CHECK(made.starts_with("1"));
  CHECK(plan.fake.Read(FakeTree::Of(kGpu, "sriov_numvfs")).starts_with("0"));
}

TEST_CASE("what cannot be journalled is not begun", "[agent]") {
  Planned plan("nvidia");
  plan.journal = Journal(plan.dir.Write("no-directory", "") + "/state", "boot");
  const std::string before = plan.Override();
  const Execution execution = plan.Run();
  CHECK(execution.outcome.refused);
  CHECK(execution.code == Code::kPermissionDenied);
  CHECK(plan.Override() == before);
}

TEST_CASE("a job without steps only closes its records", "[agent]") {
  Planned plan("vfio-pci");
  plan.job.actions.clear();
  CHECK(plan.Run().outcome.status.ok());
  std::vector<Journal::Unreadable> unreadable;
  CHECK(plan.journal.Read(unreadable)->begin()->second.IsTaken());
}

TEST_CASE("a step keeps the limit that it began with, whatever the configuration says by now",
          "[agent]") {
  const FakeTree fake;
  const ScratchDir dir;
  Jobs jobs(fake.root().string(), dir.path(), Journal(dir.path(), "boot"),
            {.step = absl::Minutes(1), .node = absl::Seconds(2)});
  const absl::Time now = MonotonicNow();
  REQUIRE(jobs.Start({.group = 17, .actions = {AwaitNode{17}}}, now).ok());
  jobs.SetLimits({.step = absl::Milliseconds(10), .node = absl::Milliseconds(10)});
  CHECK(jobs.NextDeadline() > now + absl::Seconds(30));
  CHECK(jobs.Poll(now + absl::Milliseconds(20)).empty());
}

}  // namespace
}  // namespace vfio_agent
