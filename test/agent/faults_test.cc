// Writes that fail, block or go wrong: one device pays, the agent and all others do not.
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "absl/time/clock.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kBlockForever[] =
    "faults: [{device: \"0000:1b:00.0\", op: unbind, block: forever, unkillable: true, once: "
    "true}]\n";
// In the line of the write that hangs: on a busy machine another one may be late as well.
const std::vector<std::string> kStuck = {"event=bind_stuck", "0000:1b:00.0", "nvidia/unbind"};

TEST_CASE("eight groups whose unbind takes two seconds each are bound side by side", "[node]") {
  const Node node("hgx-8gpu", "faults: [{device: \"*\", op: unbind, delay: 2s}]\n");
  const absl::Time start = absl::Now();
  CHECK(node.Run({"bind"}).exit_code == 0);
  CHECK(absl::Now() - start < absl::Seconds(8));  // one after the other: 16 s
  CHECK(node.DriverOf("0000:df:00.0") == "vfio-pci");
}

TEST_CASE("BIND-01: an unbind that never returns costs one device and not the agent",
          "[node][grpc]") {
  const Node node("hgx-8gpu", kBlockForever);
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--unbind-timeout", "1s"}));
  const std::string line = daemon.WaitForLine(kStuck, kLong);
  INFO(daemon.Log());
  CHECK_THAT(line, Catch::Contains("code=unbind-timeout") && Catch::Contains("0000:1b:00.0") &&
                       Catch::Contains("from=nvidia to=vfio-pci") && Catch::Contains("step=3/5") &&
                       Catch::Contains("drivers/nvidia/unbind") && Catch::Contains("remedy="));
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  CHECK(kubelet->Allocate(kH100, {"0000:43:00.0"}).ok());
  CHECK_FALSE(kubelet->Allocate(kH100, {"0000:1b:00.0"}).ok());
  CHECK(daemon.CountLines({"event=bind_started", "group=23"}) == 1);

  SECTION("and when the kernel returns after all, work goes on") {
    node.Control("release-blocked 0000:1b:00.0");
    CHECK(kubelet->WaitHealthy(kH100, 8, kLong));
  }
  SECTION("and SIGTERM still ends the agent in two seconds") {
    daemon.Signal(SIGTERM);
    CHECK(daemon.WaitForEnd(absl::Seconds(5)) == 0);
    node.Control("release-blocked 0000:1b:00.0");
  }
}

// The kubelet asks one plugin at a time, for all pods of the node, and does not ask a second time.
TEST_CASE("R39, T10, T11: beside a write that never returns the kubelet is answered at once",
          "[node][grpc]") {
  const Node node("hgx-8gpu", kBlockForever);
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--unbind-timeout", "1s"}));
  REQUIRE_FALSE(daemon.WaitForLine(kStuck, kLong).empty());
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  const std::string writes = node.Writes();
  const auto took = [](const auto& call) {
    const absl::Time start = absl::Now();
    call();
    return absl::Now() - start;
  };
  const std::vector<std::string> units = {"0000:43:00.0", "0000:52:00.0"};
  CHECK(took([&] { CHECK(kubelet->Preferred(kH100, units, {}, 1)->size() == 1); }) <
        absl::Seconds(5));
  CHECK(took([&] { CHECK(kubelet->Allocate(kH100, {units[0]}).ok()); }) < absl::Seconds(5));
  CHECK(took([&] { CHECK(kubelet->PreStart(kH100, {units[0]}).ok()); }) < absl::Seconds(5));
  // No wait for its bind either.
  CHECK(took([&] { CHECK_FALSE(kubelet->Allocate(kH100, {"0000:1b:00.0"}).ok()); }) <
        absl::Seconds(5));
  CHECK(node.Writes() == writes);
  node.Control("release-blocked 0000:1b:00.0");
}

TEST_CASE("a stuck child holds none of the agent's sockets open", "[node][grpc]") {
  const Node node("hgx-8gpu", kBlockForever);
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--unbind-timeout", "1s"}));
  REQUIRE_FALSE(daemon.WaitForLine(kStuck, kLong).empty());
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  daemon.Signal(SIGKILL);
  // The kubelet sees the end of the stream although the child is still in the kernel.
  CHECK(kubelet->WaitFor([](const FakeResources& resources) { return resources.at(kH100).stopped; },
                         kLong));
  node.Control("release-blocked 0000:1b:00.0");
}

TEST_CASE("bind gives a blocked device up after the deadline and binds the others", "[node]") {
  const Node node("hgx-8gpu", kBlockForever);
  const ProgramResult result = node.Run({"bind", "--unbind-timeout", "5s"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out,
             Catch::Contains("group 23: failed") && Catch::Contains("unbind-timeout 0000:1b:00.0"));
  CHECK(node.DriverOf("0000:43:00.0") == "vfio-pci");
  node.Control("release-blocked 0000:1b:00.0");
}

// What a write may answer, and where everything is in the end: as it was before.
TEST_CASE("a failed step puts the whole group back", "[node]") {
  struct Row {
    const char* fault;
    const char* code;
  };
  const Row row = GENERATE(
      Row{"{device: \"0000:01:00.1\", op: unbind, errno: EBUSY}", "driver-changed"},
      Row{"{device: \"0000:01:00.1\", op: unbind, errno: EIO}", "driver-changed"},
      Row{"{device: \"0000:01:00.1\", op: unbind, errno: ENODEV}", "driver-changed"},
      Row{"{device: \"0000:01:00.1\", op: override, errno: EINVAL, once: true}",
          "override-unsupported"},
      Row{"{device: \"0000:01:00.1\", op: override, errno: EROFS, once: true}",
          "permission-denied"},
      Row{"{device: \"0000:01:00.1\", op: probe, errno: EINVAL, once: true}", "probe-refused"},
      Row{"{device: \"0000:01:00.1\", op: drivers_probe, errno: EINVAL, once: true}",
          "probe-refused"},
      Row{"{device: \"0000:01:00.1\", op: probe, taken_by: snd_hda_intel, once: true}",
          "driver-changed"});
  CAPTURE(row.fault);
  const Node node("cases/VIA-05", "faults: [" + std::string(row.fault) + "]\n");
  const ProgramResult result = node.Run({"bind"});
  INFO(result.out << result.err << node.Writes());
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains(row.code));
  CHECK_THAT(result.err, Catch::Contains("event=bind_failed") && Catch::Contains("try="));
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");
  CHECK(node.OverrideOf("0000:01:00.0") == "(null)\n");
  CHECK(node.OverrideOf("0000:01:00.1") == "(null)\n");
}

TEST_CASE("members that others had bound stay bound when the bind of the rest fails", "[node]") {
  const Node node("cases/VIA-01",
                  "faults: [{device: \"0000:01:00.1\", op: unbind, errno: EBUSY}]\n");
  CHECK(node.Run({"bind"}).exit_code == 1);
  CHECK(node.DriverOf("0000:01:00.0") == "vfio-pci");
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");
}

TEST_CASE("the daemon tries a failed group again, later each time", "[node]") {
  const Node node("cases/VIA-05",
                  "faults: [{device: \"0000:01:00.1\", op: unbind, errno: EBUSY, count: 1}]\n");
  const Daemon daemon(node.DaemonArguments());
  CHECK_THAT(daemon.WaitForLine({"event=bind_failed"}, kLong),
             Catch::Contains("next=\"put back; tried again in 1"));
  CHECK(Eventually([&] { return node.DriverOf("0000:01:00.1") == "vfio-pci"; }, kLong));
}

// CPU time of a process so far, in clock ticks.
long Ticks(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string field;
  long ticks = 0;
  for (int i = 1; i <= 15 && stat >> field; ++i) ticks += i >= 14 ? std::stol(field) : 0;
  return ticks;
}

TEST_CASE("a group that failed and is then not to be bound any more costs no further turn",
          "[node]") {
  const Node node("cases/VIA-05",
                  "faults: [{device: \"0000:01:00.1\", op: unbind, errno: EBUSY}]\n");
  const Daemon daemon(node.DaemonArguments());
  REQUIRE_FALSE(daemon.WaitForLine({"event=bind_failed"}, kLong).empty());
  node.Control("remove 0000:01:00.0");
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_left"}, kLong).empty());
  REQUIRE(Eventually([&] { return node.DriverOf("0000:01:00.1") == "snd_hda_intel"; }, kLong));
  // The time of the next try passes, then comes the second that is measured.
  const absl::Time start = absl::Now() + absl::Seconds(1);
  REQUIRE(Eventually([&] { return absl::Now() >= start; }, kLong));
  const long ticks = Ticks(daemon.pid());
  REQUIRE(Eventually([&] { return absl::Now() >= start + absl::Seconds(1); }, kLong));
  CHECK(Ticks(daemon.pid()) - ticks < ::sysconf(_SC_CLK_TCK) / 2);
}

TEST_CASE("a bind that fails after its agent was killed is put back all the same", "[node]") {
  const Node node("cases/VIA-05",
                  "faults: [{device: \"0000:01:00.1\", op: unbind, delay: 1s, errno: EBUSY}]\n");
  Daemon daemon(node.DaemonArguments());
  REQUIRE(Eventually([&] { return node.DriverOf("0000:01:00.0") == "vfio-pci"; }, kLong));
  daemon.Signal(SIGKILL);
  CHECK(Eventually([&] { return node.DriverOf("0000:01:00.0") == "nvidia"; }, kLong));
  CHECK(Eventually([&] { return node.OverrideOf("0000:01:00.1") == "(null)\n"; }, kLong));
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");
}

TEST_CASE("an agent that starts while a child of the one before is at work waits for it",
          "[node][grpc]") {
  const Node node("hgx-8gpu",
                  "faults: [{device: \"0000:1b:00.0\", op: unbind, block: forever, unkillable: "
                  "true, once: true}]\n");
  const auto kubelet = node.StartKubelet();
  {
    Daemon first(node.DaemonArguments());
    REQUIRE_FALSE(first.WaitForLine({"event=bind_started", "group=23"}, kLong).empty());
    first.Signal(SIGTERM);
    REQUIRE(first.WaitForEnd(kLong) == 0);
  }
  const Daemon second(node.DaemonArguments());
  INFO(second.Log());
  CHECK_FALSE(second.WaitForLine({"event=group_refused", "at work on group 23"}, kLong).empty());
  node.Control("release-blocked 0000:1b:00.0");
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(second.CountLines({"event=bind_failed"}) == 0);
  // Never unbound from vfio-pci: a pod may have it by now.
  CHECK_THAT(node.Writes(), !Catch::Contains("vfio-pci/unbind"));
}

TEST_CASE("a driver_override that is slow to read once keeps its group no longer than that",
          "[node]") {
  const Node node("cases/VIA-05",
                  "faults: [{device: \"0000:01:00.0\", op: \"read:driver_override\", delay: "
                  "400ms, once: true}]\n");
  const Daemon daemon(node.DaemonArguments({"--resync", "1h"}));
  INFO(daemon.Log());
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_refused", "unbind-stuck"}, kLong).empty());
  CHECK(Eventually([&] { return node.DriverOf("0000:01:00.1") == "vfio-pci"; }, kLong));
}

TEST_CASE("bind beside a process that is at work on the group writes nothing and says so",
          "[node]") {
  const Node node("cases/VIA-05",
                  "faults: [{device: \"0000:01:00.0\", op: unbind, block: forever}]\n");
  const Daemon daemon(node.DaemonArguments());
  REQUIRE_FALSE(daemon.WaitForLine({"event=bind_started"}, kLong).empty());
  REQUIRE(
      Eventually([&] { return node.Writes().find("nvidia/unbind") != std::string::npos; }, kLong));
  const std::string writes = node.Writes();
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("foreign-manager") &&
                             Catch::Contains("at work on group 1") &&
                             Catch::Contains("wait for it to end, then try again"));
  CHECK(node.Writes() == writes);
  node.Control("release-blocked 0000:01:00.0");
}

TEST_CASE("onExit: release waits for what is half-way", "[node][grpc]") {
  const Node node("cases/VIA-05", "faults: [{device: \"0000:01:00.0\", op: unbind, delay: 1s}]\n");
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--on-exit", "release"}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=bind_started"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");
  CHECK(node.OverrideOf("0000:01:00.0") == "(null)\n");
}

TEST_CASE("onExit: release waits for a loop that is in the middle of a picture", "[node][grpc]") {
  const Node node("cases/VIA-05");
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--on-exit", "release", "--resync", "1h"}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
  node.Control("fault {device: \"0000:01:00.0\", op: \"read:config\", delay: 3s, once: true}");
  daemon.Signal(SIGHUP);
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
}

TEST_CASE("SIGTERM ends a daemon whose loop waits for a read that never returns", "[node]") {
  const Node node("cases/VIA-05",
                  "faults: [{device: \"0000:01:00.0\", op: \"read:config\", block: forever}]\n");
  Daemon daemon(node.DaemonArguments());
  REQUIRE_FALSE(daemon.WaitForLine({"event=agent_started"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(absl::Seconds(4)) == 0);  // two, and what a busy machine adds
  node.Control("release-blocked 0000:01:00.0");
}

TEST_CASE("a device that vanishes in the middle of its bind hurts no other", "[node]") {
  const Node node("hgx-8gpu", "faults: [{device: \"0000:1b:00.0\", op: unbind, vanish: true}]\n");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 1);
  CHECK(node.DriverOf("0000:43:00.0") == "vfio-pci");
}

TEST_CASE("without a place for the journal nothing is written to the kernel", "[node]") {
  const Node node("cases/VIA-05");
  const std::string file = node.dir().Write("not-a-directory", "");
  const ProgramResult result =
      RunAgent({"bind", "--root", node.root(), "--state-dir", file + "/state"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("nothing was changed"));
  CHECK(node.Writes().empty());
}

}  // namespace
}  // namespace vfio_agent
