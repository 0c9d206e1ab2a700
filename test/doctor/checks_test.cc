// Each check is content with a healthy node, and tells what is broken, with a remedy.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "agent/cluster/cluster.h"
#include "test/doctor/check_cases.h"

namespace vfio_agent {
namespace {

void RunCases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    DoctorFacts facts = HealthyFacts();
    c.breaks(facts);
    const Findings answers = Answers(facts, c.check);
    std::string all;
    for (const Finding& finding : answers) {
      all += std::string(Name(finding.state)) + ": " + finding.read + "\n";
    }
    CAPTURE(c.check, c.says, all);
    const auto wanted = [&](const Finding& finding) {
      return finding.state == c.state && finding.read.find(c.says) != std::string::npos;
    };
    const auto found = std::ranges::find_if(answers, wanted);
    REQUIRE(found != answers.end());
    CHECK((c.state != State::kFail || !found->remedy.empty()));
  }
}

TEST_CASE("on a healthy node every check is content", "[doctor]") {
  const DoctorFacts facts = HealthyFacts();
  for (const CheckedFinding& checked : Diagnose(facts).findings) {
    CAPTURE(checked.name, checked.finding.read, checked.finding.remedy);
    CHECK(checked.finding.state == State::kOk);
  }
  CHECK(Diagnose(facts).causes.empty());
}

TEST_CASE("what is broken in firmware and kernel is told", "[doctor]") { RunCases(MachineCases()); }
TEST_CASE("what is broken with modules and devices is told", "[doctor]") {
  RunCases(ModuleCases());
}
TEST_CASE("what is broken with memory, swap and disk is told", "[doctor]") {
  RunCases(HostCases());
}
TEST_CASE("what is broken with kubelet, daemon and KubeVirt is told", "[doctor]") {
  RunCases(KubeletCases());
}

TEST_CASE("a daemon that goes without the API server is nothing to complain of", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  (*facts.agent)->api = {};
  CHECK(Answers(facts, "API server").at(0).state == State::kSkipped);
}

TEST_CASE("a mode by label needs the API server, and a Node of this name", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  (*facts.agent)->mode.label = "example.com/mode";
  (*facts.agent)->api = {};
  const Finding without = Answers(facts, "API server").at(0);
  CHECK(without.state == State::kFail);
  CHECK_THAT(without.read, Catch::Contains("example.com/mode"));
  CHECK_THAT(without.remedy, Catch::Contains("api.enabled"));
  (*facts.agent)->api = {.server = "https://10.96.0.1:443",
                         .node = "gpu-7",
                         .connected = true,
                         .last_error = kNoSuchNode};
  CHECK(Answers(facts, "API server").at(0).state == State::kFail);
}

TEST_CASE("a mode whose label was never read fails, by what the API server answers", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  AgentStatus& status = **facts.agent;
  status.mode.label = "example.com/mode";
  status.mode.unread = true;
  status.mode.reason = "the node's label example.com/mode has not been read since the start";
  const auto [error, read, remedy] = GENERATE(table<std::string, std::string, std::string>(
      {{"HTTP 401: Unauthorized", "does not know the token", "api.tokenFile"},
       {"HTTP 403: nodes is forbidden", "may not see the Node", "nodes: get, list, watch"},
       {"connect: refused", "no answer from https://10.96.0.1:443", "api.server"}}));
  status.api = {.server = "https://10.96.0.1:443", .node = "gpu-7", .last_error = error};
  const Finding api = Answers(facts, "API server").at(0);
  CHECK(api.state == State::kFail);
  CHECK_THAT(api.read, Catch::Contains(read) && Catch::Contains(error));
  CHECK_THAT(api.remedy, Catch::Contains(remedy));
  CHECK(Answers(facts, "mode").at(0).state == State::kFail);
  const std::vector<RootCause> causes = Diagnose(facts).causes;  // the one comes of the other
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].explains.size() == 1);
  status.mode.unread = false;
  CHECK(Answers(facts, "API server").at(0).state == State::kWarn);
}

TEST_CASE("a switch says since when it waits for whom; a label that is none is a warning",
          "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  ModeStatus& mode = (*facts.agent)->mode;
  CHECK(Answers(facts, "mode").at(0).state == State::kOk);
  mode = {.mode = "vm-passthrough",
          .target = "container",
          .state = GENERATE("switching", "blocked"),
          .reason = "waits for pod team/vm",
          .since = absl::FromUnixSeconds(0) + absl::Hours(1)};
  const Finding waits = Answers(facts, "mode").at(0);
  CHECK(waits.state == State::kWarn);
  CHECK(waits.read == "vm-passthrough -> container (" + mode.state +
                          " since 1970-01-01T01:00:00Z): waits for pod team/vm");
  CHECK_THAT(waits.remedy, Catch::Contains("nothing is evicted"));
  mode = {.mode = "container",
          .target = "container",
          .state = "ready",
          .reason = "label example.com/mode=x is no mode",
          .label = "example.com/mode"};
  const Finding invalid = Answers(facts, "mode").at(0);
  CHECK(invalid.state == State::kWarn);
  CHECK_THAT(invalid.read, Catch::Contains("example.com/mode=x is no mode"));
  CHECK_THAT(invalid.remedy, Catch::Contains("kubectl label node"));
}

TEST_CASE("each check has a case in which it is not content", "[doctor]") {
  // These sort the plan's codes; "each code is told by one check" is their test.
  std::set<std::string_view> cases = {"groups",          "isolation", "host use",
                                      "reserved memory", "reset",     "power and bus",
                                      "binding",         "guests",    "names"};
  for (const auto& list : {MachineCases(), ModuleCases(), HostCases(), KubeletCases()}) {
    for (const Case& c : list) cases.insert(c.check);
  }
  for (const Check& check : AllChecks()) {
    CAPTURE(check.name);
    CHECK(cases.contains(check.name));
  }
}

TEST_CASE("each code is told by one check, as a failure unless it waits for a guest", "[doctor]") {
  for (int i = 0; i <= static_cast<int>(Code::kForeignManager); ++i) {
    const Code code = static_cast<Code>(i);
    DoctorFacts facts = HealthyFacts();
    facts.picture->plan.refusals = {
        {.code = code, .group = 26, .text = "why", .remedy = "what to do"}};
    CAPTURE(CodeName(code));
    int told = 0;
    for (const CheckedFinding& checked : Diagnose(facts).findings) {
      if (checked.finding.state == State::kOk) continue;
      ++told;
      CHECK(checked.layer == Layer::kDevices);
      CHECK(checked.finding.code == code);
      CHECK(checked.finding.read == "group 26: why");
      CHECK(checked.finding.remedy == "what to do");
      const bool patient =
          code == Code::kHeld || code == Code::kGroupSplit || code == Code::kExcluded;
      CHECK((checked.finding.state == State::kWarn) == patient);
    }
    CHECK(told == 1);
  }
}

TEST_CASE("a warning of the plan is a warning here, and says when it was overruled", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.picture->plan.warnings = {{.code = Code::kInUseNetwork, .text = "up", .overruled = true}};
  const Findings answers = Answers(facts, "host use");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].state == State::kWarn);
  CHECK(answers[0].read == "up (overruled by guard.override)");
}

TEST_CASE("what a daemon is at work on passes by itself", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.picture->plan.refusals = {
      {.code = Code::kForeignManager, .group = 26, .text = "at work", .remedy = "wait"}};
  CHECK(Answers(facts, "host use").at(0).state == State::kFail);
  facts.picture->custody.underway.elsewhere = {26};
  CHECK(Answers(facts, "host use").at(0).state == State::kWarn);
}

TEST_CASE("eight cards with one cause are one line", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.picture->plan.refusals.clear();
  for (int group = 0; group < 8; ++group) {
    facts.picture->plan.refusals.push_back(
        {.code = Code::kNoIommuGroup, .group = group, .text = "why"});
  }
  const Findings answers = Answers(facts, "groups");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].read == "group 0: why; and 7 more of this kind: group 1; group 2; group 3; …");
}

TEST_CASE("a kubelet that allows swap, or none at all, is not minded", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.memory.swaps = SwapOn();
  facts.kubelet.config.fail_swap_on = false;
  facts.kubelet.config.swap_behavior = "LimitedSwap";
  CHECK(Answers(facts, "swap").at(0).read ==
        "on: /swapfile (file, 8 GiB); the kubelet allows it (LimitedSwap)");
  NoKubeletAtAll(facts);
  CHECK(Answers(facts, "swap").at(0).state == State::kOk);
  facts.memory.swaps = {};  // a kernel without swap
  CHECK(Answers(facts, "swap").at(0).state == State::kOk);
}

TEST_CASE("what there is no kubelet for is skipped, and not called healthy", "[doctor]") {
  Facts facts = HealthyFacts();
  NoKubeletAtAll(facts);
  for (const char* check : {"container runtime", "configuration", "resource managers",
                            "plugin directory", "pod resources", "checkpoint"}) {
    CAPTURE(check);
    CHECK(Answers(facts, check).at(0).state == State::kSkipped);
  }
}

TEST_CASE("a machine that somebody started by hand is a warning", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  Unit& unit = facts.picture->plan.resources.at(0).units.at(0);
  unit.state = UnitState::kUnhealthy;
  unit.reason = "in-use-holder: pid 4711 (qemu-system-x86)";
  CHECK(Answers(facts, "selection").at(1).state == State::kWarn);
}

TEST_CASE("of a copy without processes nothing is said about the kubelet", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.view = View::kCopy;
  facts.processes = {};
  facts.kubelet = KubeletFacts();
  facts.kubelet.asked = false;
  facts.kubelet.config_file = "/var/lib/kubelet/config.yaml";
  for (const char* check : {"kubelet", "plugin directory", "pod resources", "checkpoint"}) {
    CAPTURE(check);
    facts.kubelet.plugin_dir = absl::NotFoundError("not copied");
    CHECK(Answers(facts, check).at(0).state == State::kUnknown);
  }
}

}  // namespace
}  // namespace vfio_agent
