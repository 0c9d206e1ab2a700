// The suite is worth what it notices: each check against a plugin that breaks its rule, and all of
// them against the same plugin when it keeps them.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "test/agent/program.h"
#include "test/conformance/runner.h"

namespace vfio_agent::conformance {
namespace {

using Generation = FakeKubelet::Generation;

struct Row {
  const char* check;
  std::vector<std::string> faults;
  const char* reason;  // a part of what the check must say
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> kRows = {
      {"listens-first", {"registers-first"}, "nobody listened"},
      {"options-in-register", {"options-after-register"}, "options came after"},
      {"list-in-register", {"list-after-register"}, "failed while Register was under way"},
      {"register-fields", {"endpoint-with-path"}, "no bare file name"},
      {"resource-name", {"odd-resource"}, "is invalid"},
      {"endpoint-length", {"long-socket-name"}, "its socket's name has"},
      {"one-socket-each", {"second-resource", "same-name-each-start"}, "shares the socket"},
      {"register-deadline", {"short-patience"}, "for the answer to Register"},
      {"same-options", {"no-options-sent"}, "GetDevicePluginOptions 1 and 1"},
      {"list-at-once", {"late-list"}, "no list within 1s"},
      {"second-stream", {"second-stream-empty"}, "told different lists"},
      {"second-stream", {"one-stream"}, "ends the ones before it"},
      {"quiet", {"chatty"}, "said what the one before said"},
      {"unique-ids", {"duplicate-id"}, "stands twice"},
      {"unique-on-node", {"second-resource", "shared-ids"}, "of another resource too"},
      {"id-shape", {"long-id"}, "bytes"},
      {"id-shape", {"odd-id"}, "no CDI device name"},
      {"health-words", {"lower-case-health"}, "\"healthy\""},
      {"topology-all-or-none", {"mixed-topology"}, "2 of 3 devices"},
      {"topology-not-empty", {"empty-topology"}, "names no node"},
      {"topology-not-empty", {"negative-node"}, "on node -1"},
      {"list-size", {"huge-list"}, "larger than max"},
      {"allocate-one", {"no-container"}, "0 container responses"},
      {"allocate-several", {"first-container-only"}, "1 responses for two containers"},
      {"allocate-several", {"reversed-containers"}, "is not that for"},
      {"allocate-unknown", {"skip-unknown"}, "unknown id succeeds"},
      {"allocate-duplicate", {"skip-duplicate"}, "one id twice succeeds"},
      {"allocate-empty", {"skip-empty"}, "an empty id succeeds"},
      {"allocate-order", {"as-asked"}, "changes the answer"},
      {"allocate-quick", {"slow-allocate"}, "Allocate took "},
      {"allocate-all", {"allocate-once"}, "given away already"},
      {"prestart", {"prestart-once"}, "started already"},
      {"prestart-unknown", {"prestart-anything"}, "succeeds"},
      {"node-fields", {"relative-path"}, "no absolute path"},
      {"node-fields", {"odd-permissions"}, "\"rwx\""},
      {"nodes-exist", {"missing-node"}, "does not exist"},
      {"nodes-once", {"node-twice"}, "two nodes at"},
      {"vfio-nodes", {"no-vfio-vfio"}, "no /dev/vfio/vfio"},
      {"vfio-nodes", {"renamed-node"}, "is at /dev/gpu"},
      {"vfio-nodes", {"read-only"}, "may only be used with \"r\""},
      {"environment", {"nameless-variable"}, "a variable named \"\""},
      {"kubevirt-variable", {"odd-variable"}, "no PCI_RESOURCE_EXAMPLE_COM_A-WIDGET"},
      {"kubevirt-variable", {"companion-address"}, "not one address for each"},
      {"kubevirt-variable", {"short-address"}, "is no address"},
      {"kubevirt-variable", {"spaced-addresses"}, "is no address"},
      {"same-again", {"counts-answers"}, "and then"},
      {"preferred-must", {"forgets-must"}, "must be included"},
      {"preferred-available", {"prefers-foreign"}, "is not available"},
      {"preferred-size", {"prefers-all"}, "devices preferred"},
      {"preferred-no-error", {"preferred-fails"}, "an error for 0 available"},
      {"preferred-too-many", {"preferred-what-there-is"}, "3 devices preferred"},
      {"health-both-ways", {"ignores-health"}, "does not say that a device is unhealthy"},
      {"health-both-ways", {"drop-sick"}, "2 of 2 devices with one sick"},
      {"removed-stays", {"drop-sick"}, "2 of 2 devices with one sick"},
      {"health-refused", {"give-sick"}, "Allocate of a sick device succeeds"},
      {"health-all-streams", {"second-stream-deaf"}, "a second stream is not told"},
      {"health-new-kubelet", {"drop-sick"}, "takes a sick device for healthy"},
      {"no-files", {"state-file"}, "state.json"},
      {"kubelet-restart",
       {"blind-for-kubelet", "blind-for-streams", "blind-for-own-socket"},
       "it does not serve its devices"},
      {"kubelet-restart", {"same-socket"}, "once more"},
      {"kubelet-killed", {"ids-of-one-socket"}, "other ids"},
      {"kubelet-restarts", {"ids-of-one-socket"}, "restart 1: other ids"},
      {"socket-deleted", {"blind-for-own-socket"}, "does not serve them anew"},
      {"all-files-swept", {"same-socket"}, "once more"},
      {"kubelet-late", {"needs-kubelet"}, "gave up with exit code 1"},
      {"directory-replaced",
       {"blind-for-kubelet", "blind-for-streams", "blind-for-own-socket"},
       "neither ends nor registers"},
      {"answer-replayed", {"ids-of-one-life"}, "no longer healthy"},
      {"stream-cancelled", {"blind-for-streams"}, "does not serve them anew"},
      {"late-disconnect", {"blind-for-streams"}, "does not serve them anew"},
      {"register-refused", {"hammers"}, "Register calls within"},
      {"register-refused", {"gives-up"}, "fewer than 3 Register calls"},
      {"options-failed", {"gives-up"}, "fewer than 2 Register calls"},
      {"dial-slow", {"short-patience"}, "it does not serve its devices"},
      {"list-never-opened", {"blind-for-streams"}, "fewer than 2 Register calls"},
      {"sigterm", {"ignores-term"}, "still runs 10s after"},
      {"sigterm", {"leaves-socket"}, "behind"},
      {"sigterm-no-kubelet", {"ignores-term"}, "still runs 10s after"},
      {"sigterm-capacity", {"says-farewell"}, "the node has 0 devices"},
      {"next-start", {"ids-of-one-life"}, "other ids than in its last life"},
      {"start-after-kill", {"same-name-each-start"}, "once more"},
  };
  return kRows;
}

// What the faulty plugin's devices need: nodes to point at, a file that tells who is sick.
struct Bench {
  Bench() {
    std::filesystem::create_directories(dir.path() + "/dev/vfio");
    for (const char* node : {"vfio", "10", "11", "12"})
      dir.Write(std::string("dev/vfio/") + node, "");
  }
  SuiteOptions Options(const std::vector<std::string>& faults) const {
    const std::string sick = dir.path() + "/sick";
    SuiteOptions options;
    options.command = {FAULTY_PLUGIN, "--dir", "{dir}", "--sick", sick};
    for (const std::string& fault : faults) {
      options.command.insert(options.command.end(), {"--fault", fault});
    }
    options.resource = "example.com/a-widget";
    options.device_root = dir.path();
    options.on_unhealthy = options.on_removed = "echo {id} > " + sick;
    options.on_healthy = options.on_returned = "echo > " + sick;
    return options;
  }
  ScratchDir dir;
};

// Runs `job` for each of `count` numbers, a few at a time: they mostly wait.
void InParallel(size_t count, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&] {
      for (size_t mine = next++; mine < count; mine = next++) job(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Result RunOne(const Bench& bench, const Row& row, Generation generation) {
  SuiteOptions options = bench.Options(row.faults);
  options.only = {row.check};
  options.generations = {generation};
  options.timeout = absl::Seconds(12);
  return RunChecks(options, Selected(options), [](const Result&) {}).at(0);
}

void FaultsAreNoticed(Generation generation) {
  std::vector<std::optional<Result>> results(Rows().size());
  InParallel(Rows().size(), [&](size_t i) {
    const Bench bench;
    results[i] = RunOne(bench, Rows()[i], generation);
  });
  for (size_t i = 0; i < results.size(); ++i) {
    INFO("fault " << Rows()[i].faults.back() << ", " << Line(*results[i]));
    CHECK(results[i]->verdict == Verdict::kFail);
    CHECK_THAT(results[i]->reason, Catch::Contains(Rows()[i].reason));
  }
}

TEST_CASE("each check notices a plugin that breaks its rule, up to 1.36", "[conformance][grpc]") {
  FaultsAreNoticed(Generation::k136);
}

TEST_CASE("each check notices a plugin that breaks its rule, from 1.37 on", "[conformance][grpc]") {
  FaultsAreNoticed(Generation::k137);
}

TEST_CASE("no check lacks a fault that it notices", "[conformance]") {
  std::set<std::string> noticed;
  for (const Row& row : Rows()) noticed.insert(row.check);
  std::set<std::string> names;
  for (const Check& check : AllChecks()) {
    INFO(check.name);
    CHECK(noticed.contains(check.name));
    CHECK(names.insert(check.name).second);
  }
}

TEST_CASE("a plugin that keeps every rule passes every check", "[conformance][grpc]") {
  const auto checks = AllChecks();
  std::vector<std::string> broken;
  std::mutex mutex;
  InParallel(checks.size() * 2, [&](size_t i) {
    const Bench bench;
    const Generation generation = i % 2 == 0 ? Generation::k136 : Generation::k137;
    // Two checks compare resources; to the others a second one would only be a process more.
    const std::string name = checks[i / 2].name;
    const bool two = name == "one-socket-each" || name == "unique-on-node";
    const Row row = {checks[i / 2].name,
                     two ? std::vector<std::string>{"second-resource"} : std::vector<std::string>{},
                     ""};
    const Result result = RunOne(bench, row, generation);
    const std::unique_lock lock(mutex);
    if (result.verdict != Verdict::kPass) broken.push_back(Line(result));
  });
  CHECK(broken == std::vector<std::string>());
}

}  // namespace
}  // namespace vfio_agent::conformance
