// The real binary's `doctor` on simulated nodes.
#include <filesystem>
#include <set>

#include "agent/doctor/diagnosis.h"
#include "test/agent/node.h"
#include "test/doctor/report_json.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

TEST_CASE("every machine file gets a whole report, with 3 where something failed", "[node]") {
  for (const auto& entry : fs::directory_iterator(MACHINES)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().stem().string());
    const Node node(entry.path().stem().string());
    const ProgramResult result = node.Run({"doctor", "-o", "json"});
    INFO(result.err);
    const Report report = Report::parse(result.out);
    CHECK(report.at("schema") == "vfio-agent/doctor/v1");
    std::set<std::string> checks;
    bool failed = false;
    for (const Report& check : report.at("checks")) {
      checks.insert(check.at("check").get<std::string>());
      failed = failed || check.at("state") == "fail";
    }
    CHECK(checks.size() == AllChecks().size());
    CHECK(result.exit_code == (failed ? 3 : 0));
    CHECK(report.at("root_causes").empty() != failed);
    CHECK(node.Writes().empty());
  }
}

TEST_CASE("a machine with its IOMMU off is told so, from the kernel up to the cards", "[node]") {
  const Node node("laptop-rtx4070m-iommu-off");
  const Report report = node.RunJson({"doctor"});
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
  Report report;
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
  Report report;
  CHECK(Eventually(
      [&] {
        report = node.RunJson(words);
        return StateOf(report, "daemon") == "ok" &&
               Find(report, "registration")->at("read") == kH100;
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

}  // namespace
}  // namespace vfio_agent
