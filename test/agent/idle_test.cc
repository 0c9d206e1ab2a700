// What the daemon does while nothing happens: nothing.
#include <fstream>
#include <set>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

// The threads that look up by the clock, as gRPC and civetweb name them. idle-bench counts how
// often.
int Pollers(pid_t pid) {
  const std::set<std::string> names = {"nexting_thread", "timer_manager", "grpc_global_tim",
                                       "civetweb-master"};
  int pollers = 0;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && names.contains(name)) ++pollers;
  }
  return pollers;
}

bool HasLoaded(pid_t pid, const std::string& library) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("a daemon that serves keeps no thread that wakes up by the clock", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--resync", "1h"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, absl::Seconds(30)));
  CHECK(Eventually([&] { return Pollers(daemon.pid()) == 0; }, absl::Seconds(10)));
  CHECK_FALSE(HasLoaded(daemon.pid(), "civetweb"));
}

TEST_CASE("metrics cost one thread that looks up by the clock, and no other", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--resync", "1h", "--metrics-listen", "127.0.0.1:0"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, absl::Seconds(30)));
  CHECK(Eventually([&] { return Pollers(daemon.pid()) == 1; }, absl::Seconds(10)));
  CHECK(HasLoaded(daemon.pid(), "civetweb"));
}

}  // namespace
}  // namespace vfio_agent
