#include "iommu/apply.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "absl/time/clock.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "test/support/facts.h"
#include "test/support/fake_kernel.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
PciAddress Address() { return At(kGpu); }

// One GPU of group 17 on nvidia, and a kernel to write to.
struct Bench {
  FakeTree fake;
  FakeKernel kernel{fake};
  std::vector<size_t> seen;  // the steps that were announced
  size_t refused_step = 99;  // the one that must not be taken

  Bench() {
    fake.Add({.address = kGpu, .driver = "nvidia", .group = 17});
    kernel.HostDriver(kGpu, "nvidia");
  }
  Outcome Run(const std::vector<Action>& actions, absl::Duration timeout = absl::Seconds(10)) {
    const Tree tree = fake.Open();
    return Apply(actions, tree, kernel, timeout, [this](size_t step) {
      seen.push_back(step);
      return step == refused_step ? absl::ResourceExhaustedError("no room") : absl::OkStatus();
    });
  }
};

std::vector<Action> BindSteps() {
  return {SetOverride{Address(), "vfio-pci"}, Unbind{Address(), "nvidia"},
          Probe{Address(), "vfio-pci"}, AwaitNode{17}};
}

TEST_CASE("the steps are written in order, each announced before it is taken", "[iommu]") {
  Bench bench;
  const Outcome outcome = bench.Run(BindSteps());
  CHECK(outcome.status.ok());
  CHECK(outcome.done == 4);
  CHECK(bench.seen == std::vector<size_t>{0, 1, 2, 3});
  CHECK(bench.kernel.log() ==
        std::vector<std::string>{"sys/bus/pci/devices/0000:3b:00.0/driver_override <- vfio-pci",
                                 "sys/bus/pci/drivers/nvidia/unbind <- 0000:3b:00.0",
                                 "sys/bus/pci/drivers_probe <- 0000:3b:00.0"});
}

TEST_CASE("a step that may not be taken is not, and neither is any after it", "[iommu]") {
  Bench bench;
  bench.refused_step = 1;
  const Outcome outcome = bench.Run(BindSteps());
  CHECK(outcome.refused);
  CHECK(outcome.done == 1);
  CHECK(absl::IsResourceExhausted(outcome.status));
  CHECK(bench.kernel.log().size() == 1);
}

TEST_CASE("nothing to do is done", "[iommu]") {
  Bench bench;
  CHECK(bench.Run({}).status.ok());
  CHECK(bench.kernel.log().empty());
}

TEST_CASE("the first failure stops all, and its errno is kept", "[iommu]") {
  Bench bench;
  bench.kernel.Fails("sys/bus/pci/drivers/nvidia/unbind", EBUSY);
  const Outcome outcome = bench.Run(BindSteps());
  CHECK(outcome.done == 1);
  CHECK(ErrnoOf(outcome.status) == EBUSY);
  CHECK(bench.seen == std::vector<size_t>{0, 1});
  CHECK(bench.kernel.log().size() == 2);
}

TEST_CASE("VGPU: an instance that is still going keeps no other from being made", "[iommu]") {
  constexpr char kGoing[] = "1c0f8f10-0000-8f10-8000-000000000001";
  constexpr char kNext[] = "1c0f8f10-0000-8f10-8000-000000000002";
  Bench bench;
  // The kernel knows the one by its name, though its directory has gone already.
  bench.kernel.Fails(MdevCreatePath(Address(), "nvidia-222"), EEXIST);
  const Outcome outcome = bench.Run(
      {CreateMdev{Address(), "nvidia-222", kGoing}, CreateMdev{Address(), "nvidia-222", kNext}});
  CHECK(absl::IsFailedPrecondition(outcome.status));
  CHECK_THAT(Message(outcome.status), Catch::StartsWith(kGoing));
  CHECK(outcome.done == 0);
  CHECK(bench.seen == std::vector<size_t>{0, 1});
}

TEST_CASE("a probe that the kernel answers with success is believed only by the link", "[iommu]") {
  Bench bench;
  bench.kernel.Declines("vfio-pci");
  const Outcome outcome = bench.Run(BindSteps());
  CHECK(outcome.done == 2);
  CHECK(absl::IsFailedPrecondition(outcome.status));
  CHECK(Message(outcome.status) == "vfio-pci did not take 0000:3b:00.0");
}

TEST_CASE("another driver that was quicker is Aborted", "[iommu]") {
  Bench bench;
  const Outcome outcome = bench.Run({Probe{Address(), "vfio-pci"}});
  CHECK(absl::IsAborted(outcome.status));
  CHECK(Message(outcome.status) == "nvidia took 0000:3b:00.0 instead of vfio-pci");
}

TEST_CASE("a probe that expects nothing is content with any driver or none", "[iommu]") {
  Bench bench;
  CHECK(bench.Run({Probe{Address(), ""}}).status.ok());
  bench.kernel.Declines("nvidia");
  CHECK(bench.Run({Unbind{Address(), "nvidia"}, Probe{Address(), ""}}).status.ok());
}

TEST_CASE("BIND-07: the override is taken away with a newline, not with nothing", "[iommu]") {
  Bench bench;
  const std::string override_file = FakeTree::Of(kGpu, "driver_override");
  REQUIRE(bench.kernel.Write(override_file, "vfio-pci\n").ok());
  REQUIRE(bench.kernel.Write(override_file, "").ok());
  CHECK(bench.fake.Read(override_file) == "vfio-pci\n");
  CHECK(bench.Run({SetOverride{Address(), ""}}).status.ok());
  CHECK(bench.fake.Read(override_file) == "(null)\n");
}

TEST_CASE("the node of the group is waited for until the time is up", "[iommu]") {
  Bench bench;
  bench.kernel.WithoutNodes();
  const absl::Time begin = absl::Now();
  const Outcome outcome = bench.Run(BindSteps(), absl::Milliseconds(40));
  CHECK(absl::Now() - begin >= absl::Milliseconds(40));
  CHECK(outcome.done == 3);
  CHECK(absl::IsDeadlineExceeded(outcome.status));
  CHECK(Message(outcome.status) == "/dev/vfio/17 did not appear");
}

TEST_CASE("a node that appears while it is waited for is enough", "[iommu]") {
  Bench bench;
  std::jthread udev;
  const Tree tree = bench.fake.Open();
  const std::vector<Action> wait = {AwaitNode{17}};
  const Outcome outcome = Apply(wait, tree, bench.kernel, absl::Seconds(60), [&](size_t step) {
    if (step == 0) udev = std::jthread([&bench] { bench.fake.Node("17"); });
    return absl::OkStatus();
  });
  CHECK(outcome.status.ok());
}

TEST_CASE("a module that cannot be loaded is the end of it", "[iommu]") {
  Bench bench;
  const std::vector<Action> steps = {LoadModule{"vfio-pci"}, SetOverride{Address(), "vfio-pci"}};
  CHECK(bench.Run(steps).done == 0);
  bench.kernel.Installs("vfio-pci", "vfio-pci");
  CHECK(bench.Run(steps).done == 2);
}

TEST_CASE("an unbind from a driver that the device has left is Aborted", "[iommu]") {
  Bench bench;
  bench.fake.Driver("nouveau");
  const Outcome outcome = bench.Run({Unbind{Address(), "nouveau"}});
  CHECK(absl::IsAborted(outcome.status));
  CHECK(Message(outcome.status) == "0000:3b:00.0 is not on nouveau any more");
}

TEST_CASE("an unbind of a device that is gone keeps the kernel's answer", "[iommu]") {
  Bench bench;
  bench.fake.Remove("sys/devices/pci0000:3b");
  CHECK(ErrnoOf(bench.Run({Unbind{Address(), "nvidia"}}).status) == ENODEV);
}

TEST_CASE("a device that left the bus is noticed at the next write", "[iommu]") {
  Bench bench;
  bench.fake.Remove("sys/devices/pci0000:3b");
  const Outcome outcome = bench.Run({Probe{Address(), "vfio-pci"}});
  CHECK(ErrnoOf(outcome.status) == ENODEV);
}

TEST_CASE("a failed step has a code that tells what an operator can do", "[iommu]") {
  const Action load = LoadModule{"vfio-pci"};
  const Action override_step = SetOverride{Address(), "vfio-pci"};
  const Action unbind = Unbind{Address(), "nvidia"};
  const Action probe = Probe{Address(), "vfio-pci"};
  const Action await_node = AwaitNode{17};
  struct Row {
    Action action;
    absl::Status status;
    Code code;
  };
  const std::vector<Row> rows = {
      {load, absl::NotFoundError("x"), Code::kVfioDriverMissing},
      {load, absl::PermissionDeniedError("x"), Code::kPermissionDenied},
      {load, ErrnoStatus(ENODEV, "x"), Code::kVfioDriverMissing},
      {override_step, ErrnoStatus(ENOENT, "x"), Code::kOverrideUnsupported},
      {override_step, ErrnoStatus(EACCES, "x"), Code::kPermissionDenied},
      {override_step, ErrnoStatus(EROFS, "x"), Code::kPermissionDenied},
      {override_step, ErrnoStatus(ENODEV, "x"), Code::kDeviceGone},
      {unbind, ErrnoStatus(EBUSY, "x"), Code::kDriverChanged},
      {unbind, ErrnoStatus(ENXIO, "x"), Code::kDeviceGone},
      {unbind, ErrnoStatus(EPERM, "x"), Code::kPermissionDenied},
      {probe, absl::FailedPreconditionError("x"), Code::kProbeRefused},
      {probe, ErrnoStatus(EINVAL, "x"), Code::kProbeRefused},
      {probe, absl::AbortedError("x"), Code::kDriverChanged},
      {probe, ErrnoStatus(ENODEV, "x"), Code::kDeviceGone},
      {await_node, absl::DeadlineExceededError("x"), Code::kNodeMissing},
  };
  for (const Row& row : rows) {
    CAPTURE(ToShell(row.action), row.status.ToString());
    CHECK(CodeName(CodeOfFailure(row.action, row.status)) == CodeName(row.code));
  }
}

}  // namespace
}  // namespace vfio_agent
