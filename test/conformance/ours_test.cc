// vfio-agent itself, on simulated nodes: it keeps every rule.
#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include "test/agent/node.h"
#include "test/conformance/runner.h"

namespace vfio_agent::conformance {
namespace {

using Generation = FakeKubelet::Generation;

constexpr size_t kNodes = 4;

SuiteOptions OptionsFor(const Node& node, Generation generation) {
  SuiteOptions options;
  options.command = {VFIO_AGENT};
  for (const std::string& word : node.With({"run", "--device-plugin-dir", "{dir}",
                                            "--kubelet-root-dir", "{root}", "--resync", "200ms"})) {
    options.command.push_back(word);
  }
  options.resource = kH100;
  options.devices = 8;
  options.generations = {generation};
  options.device_root = node.root();
  options.on_unhealthy = options.on_removed = "echo remove {id} > " + node.root() + "/.control";
  options.on_healthy = options.on_returned = "echo add {id} > " + node.root() + "/.control";
  return options;
}

// What is run on one node in one go: all checks that share a plugin, or a single one.
std::deque<std::vector<Check>> Jobs() {
  std::deque<std::vector<Check>> jobs(1);
  for (const Check& check : AllChecks()) {
    if (check.needs == Check::Needs::kOwn) {
      jobs.push_back({check});
    } else {
      jobs.front().push_back(check);
    }
  }
  return jobs;
}

std::vector<Result> RunAll(Generation generation) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (size_t i = 0; i < kNodes; ++i) nodes.push_back(std::make_unique<Node>("hgx-8gpu"));
  std::deque<std::vector<Check>> jobs = Jobs();
  std::vector<Result> results;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (const auto& node : nodes) {
    threads.emplace_back([&, options = OptionsFor(*node, generation)] {
      for (std::unique_lock lock(mutex); !jobs.empty();) {
        const std::vector<Check> job = jobs.front();
        jobs.pop_front();
        lock.unlock();
        const std::vector<Result> part = RunChecks(options, job, [](const Result&) {});
        lock.lock();
        results.insert(results.end(), part.begin(), part.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

void EverythingPasses(Generation generation) {
  const std::vector<Result> results = RunAll(generation);
  CHECK(results.size() == AllChecks().size());
  for (const Result& result : results) {
    // One model of GPU: what two resources have in common cannot be tried.
    const bool needs_two = std::string(result.check.name) == "one-socket-each" ||
                           std::string(result.check.name) == "unique-on-node";
    INFO(Line(result));
    CHECK(result.verdict == (needs_two ? Verdict::kNotTried : Verdict::kPass));
  }
}

TEST_CASE("vfio-agent keeps the kubelet's contract up to 1.36", "[conformance][grpc]") {
  EverythingPasses(Generation::k136);
}

TEST_CASE("vfio-agent keeps the kubelet's contract from 1.37 on", "[conformance][grpc]") {
  EverythingPasses(Generation::k137);
}

}  // namespace
}  // namespace vfio_agent::conformance
