// start-bench DIR... : time, CPU time and resident memory from start to Register, of vfio-agent on
// each tree DIR (all devices bound) and of a plugin that does nothing, in turns; medians and
// ratios.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {
namespace {

constexpr int kRounds = 9;

struct Figures {
  double register_ms = 0;
  double cpu_ms = 0;
  double resident_mb = 0;
};

double ReadResidentMb(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

double ToMs(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

pid_t Start(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  ::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// Starts the program beside a kubelet of its own and waits until it has registered.
Figures Measure(const std::vector<std::string>& words, const std::string& dir) {
  FakeKubelet kubelet({.dir = dir, .root_dir = dir + "/kubelet"});
  if (!kubelet.Start().ok()) std::abort();
  const absl::Time start = absl::Now();
  const pid_t pid = Start(words);
  kubelet.WaitFor(
      [](const FakeResources& resources) {
        return std::ranges::any_of(resources,
                                   [](const auto& r) { return r.second.registrations > 0; });
      },
      absl::Seconds(60));
  Figures figures{.register_ms = absl::ToDoubleMilliseconds(absl::Now() - start)};
  // What a plugin does about its first list belongs to its start.
  kubelet.WaitFor(
      [](const FakeResources& resources) {
        return std::ranges::any_of(resources, [](const auto& r) { return r.second.messages > 0; });
      },
      absl::Milliseconds(500));
  figures.resident_mb = ReadResidentMb(pid);
  ::kill(pid, SIGTERM);
  rusage usage = {};
  int status = 0;
  ::wait4(pid, &status, 0, &usage);
  figures.cpu_ms = ToMs(usage.ru_utime) + ToMs(usage.ru_stime);
  return figures;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Figures MedianOf(const std::vector<Figures>& all) {
  std::vector<double> times, cpu, resident;
  for (const Figures& figures : all) {
    times.push_back(figures.register_ms);
    cpu.push_back(figures.cpu_ms);
    resident.push_back(figures.resident_mb);
  }
  return {Median(times), Median(cpu), Median(resident)};
}

void Compare(const std::string& tree, const std::string& scratch) {
  std::vector<Figures> agent, empty;
  for (int i = 0; i < kRounds; ++i) {
    const std::string dir = scratch + "/" + std::to_string(i);
    std::filesystem::create_directories(dir);
    empty.push_back(Measure({EMPTY_PLUGIN, dir}, dir));
    agent.push_back(Measure({VFIO_AGENT, "run", "--root", tree, "--device-plugin-dir", dir,
                             "--kubelet-root-dir", dir + "/kubelet", "--state-dir", dir + "/state"},
                            dir));
  }
  const Figures a = MedianOf(agent), e = MedianOf(empty);
  std::printf(
      "tree=%s register_ms=%.1f cpu_ms=%.1f resident_mb=%.1f | empty plugin: register_ms=%.1f "
      "cpu_ms=%.1f resident_mb=%.1f | ratio register=%.2f cpu=%.2f\n",
      tree.c_str(), a.register_ms, a.cpu_ms, a.resident_mb, e.register_ms, e.cpu_ms, e.resident_mb,
      a.register_ms / e.register_ms, a.cpu_ms / e.cpu_ms);
}

int Main(const std::vector<std::string>& trees) {
  std::string scratch = (std::filesystem::temp_directory_path() / "bench-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return 1;
  for (const std::string& tree : trees) {
    Compare(tree, scratch);
    std::filesystem::remove_all(scratch);
  }
  return 0;
}

}  // namespace
}  // namespace vfio_agent

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: start-bench DIR...\n", stderr);
    return 2;
  }
  return vfio_agent::Main({argv + 1, argv + argc});
}
