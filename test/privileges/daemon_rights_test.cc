// The daemon's own processes and threads, by the kernel's word.
#include <sys/stat.h>
#include <unistd.h>

#include "test/agent/config_mount.h"
#include "test/agent/node.h"
#include "test/privileges/process_rights.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

bool IsRoot() {
  if ((PermittedRights() & kAgentRights) == kAgentRights) return true;
  WARN("skipped: only root has something to drop");
  return false;
}

TEST_CASE(
    "each thread of the daemon keeps what the agent uses, and has only the loop's switched on",
    "[node][grpc]") {
  if (!IsRoot()) return;
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  int looked_at = 0;
  for (const std::string& task : TasksOf(daemon.pid())) {
    CAPTURE(task);
    const std::string status = ReadStatus(task);
    if (status.empty()) continue;  // the thread has ended since it was listed
    ++looked_at;
    const ProcessRights caps = ParseCaps(status);
    CHECK(caps.permitted == kAgentRights);
    CHECK(caps.effective == kLoopRights);
    CHECK(caps.bounding == kAgentRights);
    CHECK(caps.inheritable == kNoRights);
    CHECK(caps.ambient == kNoRights);
    CHECK(caps.no_new_privs);
  }
  CHECK(looked_at > 2);
  CHECK(daemon.CountLines({"event=privileges_missing"}) == 0);
  CHECK(daemon.CountLines({"privileges are not dropped"}) == 0);
}

TEST_CASE("a child that writes to the kernel has no capability at all", "[node][grpc]") {
  if (!IsRoot()) return;
  const Node node("hgx-8gpu", "faults: [{device: \"0000:1b:00.0\", op: unbind, block: forever}]\n");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--unbind-timeout", "60s"}));
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  // Of all children only the one that waits in its write stays.
  const auto writer = [&] {
    const std::vector<pid_t> children = ChildrenOf(daemon.pid());
    return std::ranges::any_of(children, [](pid_t child) {
      const ProcessRights caps = CapsOf(std::to_string(child));
      return caps.no_new_privs && caps.permitted == kNoRights && caps.bounding == kAgentRights;
    });
  };
  CHECK(Eventually(writer, kLong));
  node.Control("release-blocked 0000:1b:00.0");
  CHECK(kubelet->WaitHealthy(kH100, 8, kLong));
}

// The directory belongs to another user, and shuts root out who has no CAP_DAC_OVERRIDE.
void ShutOut(const std::filesystem::path& dir, bool out) {
  REQUIRE(::chown(dir.c_str(), out ? 65534 : 0, 0) == 0);
  REQUIRE(::chmod(dir.c_str(), 0700) == 0);
}

TEST_CASE("a configuration that the daemon cannot read later is not read at the start either",
          "[node][grpc]") {
  if (!IsRoot()) return;
  const Node node("cases/BIND-13");
  const ConfigMount mount(node.dir().path() + "/etc", "mode: container\n");
  ShutOut(node.dir().path() + "/etc", true);
  Daemon daemon(node.DaemonArguments({"--config", mount.file()}));
  CHECK(daemon.WaitForEnd(kLong) == 2);
  CHECK(daemon.CountLines({"config.yaml: Permission denied"}) == 1);
}

TEST_CASE("a configuration that cannot be read any more is not told as gone", "[node][grpc]") {
  if (!IsRoot()) return;
  const Node node("cases/BIND-13");
  ConfigMount mount(node.dir().path() + "/etc", "mode: container\n");
  const Daemon daemon(node.DaemonArguments({"--config", mount.file()}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=agent_started"}, kLong).empty());
  ShutOut(node.dir().path() + "/etc", true);
  mount.Put("mode: container\n");
  INFO(daemon.Log());
  CHECK_FALSE(daemon
                  .WaitForLine({"event=config_rejected", "why=\"the file cannot be read\"",
                                "errno=EACCES", "give the file"},
                               kLong)
                  .empty());
  ShutOut(node.dir().path() + "/etc", false);
  mount.Put("mode: container\nresync: 77s\n");
  CHECK_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  CHECK(daemon.CountLines({"the file has gone"}) == 0);
}

}  // namespace
}  // namespace vfio_agent
