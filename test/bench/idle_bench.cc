// idle-bench [--seconds N] DIR... : how often the threads of a plugin are woken while nothing
// happens, of vfio-agent on each tree DIR (all devices bound) and of a plugin that does nothing.
// Counts voluntary context switches, the kernel's measure of how often a thread went to sleep.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// The time after the registration in which a plugin may still be busy with its first list.
constexpr absl::Duration kSettle = absl::Seconds(3);

struct Thread {
  std::string name;
  long sleeps = 0;
};
using Threads = std::map<std::string, Thread>;  // by thread id

Threads ReadThreads(pid_t pid) {
  Threads threads;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    Thread& thread = threads[task.path().filename()];
    std::ifstream comm(task.path() / "comm");
    std::getline(comm, thread.name);
    std::ifstream status(task.path() / "status");
    constexpr char kKey[] = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(kKey)) thread.sleeps = std::atol(line.c_str() + std::strlen(kKey));
    }
  }
  return threads;
}

// Wake-ups per thread name; a thread that came meanwhile counts from its start.
std::map<std::string, long> Count(const Threads& before, const Threads& after) {
  std::map<std::string, long> wakes;
  for (const auto& [id, thread] : after) {
    const auto old = before.find(id);
    wakes[thread.name] += thread.sleeps - (old == before.end() ? 0 : old->second.sleeps);
  }
  return wakes;
}

void Print(const std::string& what, size_t threads, const std::map<std::string, long>& wakes,
           double seconds) {
  long all = 0;
  for (const auto& entry : wakes) all += entry.second;
  std::printf("%s: threads=%zu wakeups_per_second=%.2f", what.c_str(), threads,
              static_cast<double>(all) / seconds);
  for (const auto& [name, count] : wakes) {
    if (count != 0) std::printf(" %s=%.2f", name.c_str(), static_cast<double>(count) / seconds);
  }
  std::printf("\n");
}

pid_t Start(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  if (::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ) != 0) {
    std::perror(words[0].c_str());
    std::abort();
  }
  ::posix_spawn_file_actions_destroy(&actions);
  return pid;
}

bool SomeoneIsListed(const FakeResources& resources) {
  return std::ranges::any_of(resources, [](const auto& r) { return r.second.messages > 0; });
}

bool SomeoneIsRegistered(const FakeResources& resources) {
  return std::ranges::any_of(resources, [](const auto& r) { return r.second.registrations > 0; });
}

// Runs the program beside a kubelet of its own. False where it does not register; `lists` where
// the program is expected to send its list as well.
bool Measure(const std::vector<std::string>& words, const std::string& dir, bool lists,
             double seconds) {
  fs::create_directories(dir);
  FakeKubelet kubelet({.dir = dir, .root_dir = dir + "/kubelet"});
  if (!kubelet.Start().ok()) return false;
  const pid_t pid = Start(words);
  const bool ready =
      kubelet.WaitFor(lists ? SomeoneIsListed : SomeoneIsRegistered, absl::Seconds(60));
  if (ready) {
    absl::SleepFor(kSettle);
    const Threads before = ReadThreads(pid);
    absl::SleepFor(absl::Seconds(seconds));
    const Threads after = ReadThreads(pid);
    Print(words[0].substr(words[0].rfind('/') + 1), after.size(), Count(before, after), seconds);
  }
  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return ready;
}

int Main(const std::vector<std::string>& trees, double seconds) {
  std::string scratch = (fs::temp_directory_path() / "bench-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return 1;
  bool ok = Measure({EMPTY_PLUGIN, scratch + "/e"}, scratch + "/e", false, seconds);
  for (size_t i = 0; i < trees.size(); ++i) {
    const std::string dir = scratch + "/" + std::to_string(i);
    std::printf("tree=%s ", trees[i].c_str());
    ok = Measure({VFIO_AGENT, "run", "--root", trees[i], "--device-plugin-dir", dir,
                  "--kubelet-root-dir", dir + "/kubelet", "--state-dir", dir + "/state"},
                 dir, true, seconds) &&
         ok;
  }
  fs::remove_all(scratch);
  if (!ok) std::fputs("idle-bench: a program did not register\n", stderr);
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace vfio_agent

int main(int argc, char** argv) {
  std::vector<std::string> trees(argv + 1, argv + argc);
  double seconds = 10;
  if (trees.size() > 1 && trees[0] == "--seconds") {
    seconds = std::atof(trees[1].c_str());
    trees.erase(trees.begin(), trees.begin() + 2);
  }
  if (trees.empty() || seconds <= 0) {
    std::fputs("usage: idle-bench [--seconds N] DIR...\n", stderr);
    return 2;
  }
  return vfio_agent::Main(trees, seconds);
}
