// allocate-bench [--clients N] [--calls N] [--rounds N] [--simulated]: eight clients that call
// Allocate as fast as they are answered, of vfio-agent on a node where devices come and go all the
// time, and of a plugin that answers nothing, in turns. Prints calls a second, quantiles, their
// ratio, errors and the agent's memory. Fails on an error or where the memory has grown.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "test/bench/load.h"
#include "test/bench/load_node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// What the memory may grow by after the first round, in which buffers and arenas are made.
constexpr double kGrowthMb = 1.5;

struct Options {
  int clients = 8;
  int calls = 100'000;  // of each client, to each of the two plugins
  int rounds = 20;
  bool simulated = false;
};

// One that is ended with the object.
class Process {
 public:
  explicit Process(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    ::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Of all its threads, in the kernel too.
  double CpuSeconds() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string field;
    for (int i = 0; i < 11; ++i) fields >> field;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  // Its own memory: how much of its program the kernel maps at once is the page cache's matter.
  double ResidentMb() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("RssAnon:")) return std::atof(line.c_str() + 8) / 1024;
    }
    return 0;
  }

 private:
  pid_t pid_ = -1;
};

struct Measured {
  LoadResult agent, empty;
  double agent_cpu = 0, empty_cpu = 0;  // seconds
  std::vector<double> ratios;           // p99 agent / p99 empty, of each round
  std::vector<double> resident;         // of the agent, after each round
};

void PrintSide(const char* name, const LoadResult& result, double cpu) {
  std::printf(
      "%s: calls=%zu calls_per_second=%.0f p50_us=%.0f p99_us=%.0f p99.9_us=%.0f cpu_us=%.1f "
      "errors=%d",
      name, result.micros.size(), result.CallsPerSecond(), Quantile(result.micros, 0.5),
      Quantile(result.micros, 0.99), Quantile(result.micros, 0.999),
      cpu * 1e6 / static_cast<double>(result.micros.size()), result.errors);
  std::printf("%s%s\n", result.errors > 0 ? " first: " : "", result.first_error.c_str());
}

void Print(const Measured& measured, int plugs) {
  PrintSide("agent", measured.agent, measured.agent_cpu);
  PrintSide("empty plugin", measured.empty, measured.empty_cpu);
  double load[1] = {0};
  ::getloadavg(load, 1);
  const auto ratio = [&](double rank) {
    return Quantile(measured.agent.micros, rank) / Quantile(measured.empty.micros, rank);
  };
  std::printf(
      "ratio: p50=%.2f p99=%.2f p99.9=%.2f calls_per_second=%.2f; p99 by rounds: median=%.2f "
      "from=%.2f to=%.2f\n",
      ratio(0.5), ratio(0.99), ratio(0.999),
      measured.agent.CallsPerSecond() / measured.empty.CallsPerSecond(),
      Quantile(measured.ratios, 0.5), Quantile(measured.ratios, 0), Quantile(measured.ratios, 1));
  std::printf("hot_plugs=%d resident_mb: start=%.1f middle=%.1f end=%.1f load_average=%.1f\n",
              plugs, measured.resident.front(), measured.resident[measured.resident.size() / 2],
              measured.resident.back(), load[0]);
}

// Empty where all went well.
std::string WhyWrong(const Measured& measured, const Plugger& plugger) {
  if (measured.agent.errors > 0) return "the agent: " + measured.agent.first_error;
  if (measured.empty.errors > 0) return "the empty plugin: " + measured.empty.first_error;
  if (measured.resident.back() > measured.resident.front() + kGrowthMb) {
    return "the agent's memory has grown";
  }
  if (plugger.steps() < 2) return "no hot plug came to an end meanwhile";
  return plugger.failure();
}

// One of the two plugins: what is asked of it, and where it runs.
struct Side {
  LoadPlan plan;
  const Process& process;
};

// One round more than asked for: the first one warms both up and does not count. It lasts until a
// device has gone and come back.
Measured Measure(const Options& options, Side agent, Side empty, const Plugger& plugger) {
  Measured measured;
  agent.plan.calls = empty.plan.calls = std::max(1, options.calls / options.rounds);
  for (int round = 0; round <= options.rounds; ++round) {
    const double agent_before = agent.process.CpuSeconds();
    LoadResult a = RunLoad(agent.plan);
    while (round == 0 && a.errors == 0 && plugger.steps() < 2 && plugger.failure().empty()) {
      a.Add(RunLoad(agent.plan));
    }
    const double empty_before = empty.process.CpuSeconds();
    const double agent_cpu = agent.process.CpuSeconds() - agent_before;
    const LoadResult e = RunLoad(empty.plan);
    measured.resident.push_back(agent.process.ResidentMb());
    if (round == 0 && a.errors + e.errors == 0) continue;
    measured.agent.Add(a);
    measured.empty.Add(e);
    measured.agent_cpu += agent_cpu;
    measured.empty_cpu += empty.process.CpuSeconds() - empty_before;
    measured.ratios.push_back(Quantile(a.micros, 0.99) / Quantile(e.micros, 0.99));
  }
  return measured;
}

int Main(const Options& options, const std::string& scratch) {
  const auto node = LoadNode::Make(
      options.simulated ? LoadNode::Kind::kSimulated : LoadNode::Kind::kPlain, scratch);
  if (!node.ok()) {
    std::fprintf(stderr, "allocate-bench: %s\n", std::string(node.status().message()).c_str());
    return 1;
  }
  const std::string dir = scratch + "/dp";
  fs::create_directory(dir);
  FakeKubelet kubelet({.dir = dir, .root_dir = scratch + "/kl"});
  if (!kubelet.Start().ok()) return 1;
  const Process empty({EMPTY_PLUGIN, dir});
  const Process agent({VFIO_AGENT, "run", "--root", (*node)->root(), "--config", (*node)->config(),
                       "--device-plugin-dir", dir, "--kubelet-root-dir", scratch + "/kl",
                       "--state-dir", scratch + "/state", "--resync", "100ms"});
  if (!kubelet.WaitHealthy(kSteady, kSteadyUnits, absl::Seconds(60)) ||
      !kubelet.WaitHealthy(kMoving, kMovingUnits, absl::Seconds(60))) {
    std::fputs("allocate-bench: the agent does not register\n", stderr);
    return 1;
  }
  const Plugger plugger(**node, kubelet);
  const LoadPlan to_agent{.socket = dir + "/" + kubelet.Resources().at(kSteady).endpoint,
                          .clients = options.clients,
                          .ids = LoadNode::SteadyIds()};
  LoadPlan to_empty = to_agent;
  to_empty.socket = dir + "/empty.sock";
  to_empty.checked = false;
  const Measured measured = Measure(options, {to_agent, agent}, {to_empty, empty}, plugger);
  Print(measured, plugger.steps());
  const std::string wrong = WhyWrong(measured, plugger);
  if (!wrong.empty()) std::fprintf(stderr, "allocate-bench: %s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace vfio_agent

int main(int argc, char** argv) {
  vfio_agent::Options options;
  CLI::App app("Allocate under load, beside a plugin that does nothing");
  app.add_option("--clients", options.clients)->check(CLI::Range(1, 256));
  app.add_option("--calls", options.calls, "of each client")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_flag("--simulated", options.simulated, "through the simulated kernel, not plain files");
  CLI11_PARSE(app, argc, argv);
  std::string scratch = (std::filesystem::temp_directory_path() / "load-XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) return 1;
  const int code = vfio_agent::Main(options, scratch);
  std::filesystem::remove_all(scratch);
  return code;
}
