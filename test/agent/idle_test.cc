// What the daemon does while nothing happens: nothing.
#include <fstream>
#include <set>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

// The threads that look up by the clock, as gRPC names them. idle-bench counts how often.
int Pollers(pid_t pid) {
  const std::set<std::string> names = {"nexting_thread", "timer_manager", "grpc_global_tim"};
  int pollers = 0;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && names.contains(name)) ++pollers;
  }
  return pollers;
}

TEST_CASE("a daemon that serves keeps no thread that wakes up by the clock", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--resync", "1h"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, absl::Seconds(30)));
  CHECK(Eventually([&] { return Pollers(daemon.pid()) == 0; }, absl::Seconds(10)));
}

}  // namespace
}  // namespace vfio_agent
