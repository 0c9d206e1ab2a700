// The real binary's `doctor` on simulated nodes and on copies.
#include <filesystem>
#include <set>

#include "test/agent/node.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kSwapOn[] =
    "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition 8388604 0 -2\n";

const Json* Find(const Json& report, const std::string& check) {
  const auto& checks = report.at("checks");
  const auto found =
      std::ranges::find_if(checks, [&](const Json& entry) { return entry.at("check") == check; });
  return found == checks.end() ? nullptr : &*found;
}

std::string StateOf(const Json& report, const std::string& check) {
  const Json* const found = Find(report, check);
  return found == nullptr ? "there is no such check" : found->at("state").get<std::string>();
}

// "swap: kubelet, registration", of the first cause.
std::string FirstCause(const Json& report) {
  if (report.at("root_causes").empty()) return "none";
  const Json& cause = report.at("root_causes").at(0);
  const auto name = [&](const Json& place) {
    return report.at("checks").at(place.get<size_t>()).at("check").get<std::string>();
  };
  std::string text = name(cause.at("check")) + ":";
  for (const Json& place : cause.at("explains")) text += " " + name(place);
  return text;
}

// A copy of a node whose GPU is as it should be.
struct Copy : FakeTree {
  Copy() {
    Add({.address = "0000:65:00.0", .driver = "vfio-pci", .group = 26});
    Attribute("0000:65:00.0", "reset_method", "flr");
    Node("26").Write("sys/module/vfio/refcnt", "1\n").Write("sys/module/vfio_pci/refcnt", "1\n");
    Write("sys/module/vfio_iommu_type1/refcnt", "1\n");
    Write("proc/cmdline", "quiet intel_iommu=on\n").Write("proc/swaps", "Filename Type Size\n");
    Write("proc/1/comm", "systemd\n").Write("proc/900/comm", "kubelet\n");
    Write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n");
  }
  ProgramResult Run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"doctor", "--root", root().string()};
    words.insert(words.end(), more.begin(), more.end());
    return RunAgent(words, {"LC_ALL=C"});
  }
  Json Report() const { return Json::parse(Run({"-o", "json"}).out); }
};

TEST_CASE("every machine file gets a whole report, with 3 where something failed", "[node]") {
  for (const auto& entry : fs::directory_iterator(MACHINES)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().stem().string());
    const Node node(entry.path().stem().string());
    const ProgramResult result = node.Run({"doctor", "-o", "json"});
    INFO(result.err);
    const Json report = Json::parse(result.out);
    CHECK(report.at("schema") == "vfio-agent/doctor/v1");
    std::set<std::string> checks;
    bool failed = false;
    for (const Json& check : report.at("checks")) {
      checks.insert(check.at("check").get<std::string>());
      failed = failed || check.at("state") == "fail";
    }
    CHECK(checks.size() == 34);
    CHECK(result.exit_code == (failed ? 3 : 0));
    CHECK(report.at("root_causes").empty() != failed);
    CHECK(node.Writes().empty());
  }
}

TEST_CASE("a machine with its IOMMU off is told so, from the kernel up to the cards", "[node]") {
  const Node node("laptop-rtx4070m-iommu-off");
  const Json report = node.RunJson({"doctor"});
  CHECK(StateOf(report, "IOMMU") == "fail");
  CHECK(Find(report, "IOMMU")->at("code") == "iommu-off");
  CHECK(FirstCause(report) == "IOMMU: groups");
}

TEST_CASE("a node that could give its cards away fails in nothing", "[node]") {
  const Node node("hgx-8gpu");
  const ProgramResult result = node.Run({"doctor"});
  INFO(result.out);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("nvidia.com/GH100_H100_SXM5_80GB: 8 to-bind"));
}

TEST_CASE("of a group with a foreign member doctor says what plan says", "[node]") {
  const Node node("cases/VIA-17");
  const ProgramResult result = node.Run({"doctor", "-o", "wide"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("foreign-member: group") &&
                             Catch::Contains("likely root cause: groups (devices)"));
}

TEST_CASE("swap that was switched on is named as the cause of a kubelet that is gone", "[node]") {
  Copy copy;
  CHECK(copy.Run().exit_code == 0);
  copy.Write("proc/swaps", kSwapOn);
  CHECK(StateOf(copy.Report(), "swap") == "warn");  // it runs still

  copy.Remove("proc/900");
  const ProgramResult result = copy.Run();
  CHECK(result.exit_code == 3);
  INFO(result.out);
  CHECK_THAT(result.out,
             Catch::Contains("likely root cause: swap (host): on: /dev/sda2 (partition, 7 GiB)") &&
                 Catch::Contains("may come of it: kubelet (kubelet)") &&
                 Catch::Contains("swapoff -a"));
  copy.Write("var/lib/kubelet/config.yaml", "failSwapOn: false\n");
  CHECK(FirstCause(copy.Report()) == "kubelet:");
}

TEST_CASE("swap, a dead kubelet and a daemon that cannot register are one story", "[node]") {
  const Node node(
      "hgx-8gpu",
      "files:\n  proc/swaps: \"Filename Type Size\\n/dev/sda2 partition 8388604 0 -2\\n\"\n"
      "  var/lib/kubelet/config.yaml: \"kind: KubeletConfiguration\\n\"\n"
      "processes:\n- {pid: 1, comm: systemd}\n");
  node.StartKubelet()->Stop();
  const Daemon daemon(node.DaemonArguments());
  const std::vector<std::string> words = {"doctor", "--device-plugin-dir", node.kubelet_dir(),
                                          "--kubelet-root-dir", node.kubelet_root()};
  Json report;
  REQUIRE(Eventually(
      [&] {
        report = node.RunJson(words);
        return StateOf(report, "registration") == "fail";
      },
      absl::Seconds(20)));
  CHECK_THAT(FirstCause(report), Catch::StartsWith("swap: kubelet"));
  CHECK_THAT(FirstCause(report), Catch::Contains("registration"));
  CHECK(StateOf(report, "daemon") == "warn");  // not ready
}

TEST_CASE("doctor sees a node that serves as healthy", "[node]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  const std::vector<std::string> words = {"doctor", "--device-plugin-dir", node.kubelet_dir(),
                                          "--kubelet-root-dir", node.kubelet_root()};
  Json report;
  CHECK(Eventually(
      [&] {
        report = node.RunJson(words);
        return StateOf(report, "daemon") == "ok";
      },
      absl::Seconds(20)));
  INFO(report.dump(1));
  CHECK(report.at("healthy") == true);
  for (const char* check : {"kubelet", "plugin directory", "pod resources", "registration",
                            "writes", "state directory"}) {
    CAPTURE(check);
    CHECK(StateOf(report, check) == "ok");
  }
}

TEST_CASE("a tree without PCI devices has a report too", "[node]") {
  FakeTree fake;
  fake.Write("proc/swaps", kSwapOn);
  const ProgramResult result = RunAgent({"doctor", "--root", fake.root().string()}, {"LC_ALL=C"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("FAIL reading") && Catch::Contains("swap"));
}

TEST_CASE("a kubelet's file that is broken is a finding", "[node]") {
  Copy copy;
  copy.Write("var/lib/kubelet/config.yaml", "failSwapOn: [\n");
  const Json report = copy.Report();
  CHECK(StateOf(report, "configuration") == "warn");
  CHECK_THAT(Find(report, "configuration")->at("read").get<std::string>(),
             Catch::Contains("/var/lib/kubelet/config.yaml:"));
}

}  // namespace
}  // namespace vfio_agent
