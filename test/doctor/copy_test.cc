// The real binary's `doctor` on copies of nodes.
#include <catch2/catch.hpp>

#include "test/agent/program.h"
#include "test/doctor/report_json.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kSwapOn[] =
    "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition 8388604 0 -2\n";

// A copy of a node whose GPU is as it should be.
struct Copy : FakeTree {
  Copy() {
    Add({.address = "0000:65:00.0", .driver = "vfio-pci", .group = 26});
    Attribute("0000:65:00.0", "reset_method", "flr");
    Node("26")
        .Node("vfio")
        .Write("sys/module/vfio/refcnt", "1\n")
        .Write("sys/module/vfio_pci/refcnt", "1\n");
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
  Report Json() const { return Report::parse(Run({"-o", "json"}).out); }
};

TEST_CASE("swap that was switched on is named as the cause of a kubelet that is gone", "[node]") {
  Copy copy;
  CHECK(copy.Run().exit_code == 0);
  copy.Write("proc/swaps", kSwapOn);
  CHECK(StateOf(copy.Json(), "swap") == "warn");  // it runs still

  copy.Remove("proc/900");
  const ProgramResult result = copy.Run();
  CHECK(result.exit_code == 3);
  INFO(result.out);
  CHECK_THAT(result.out,
             Catch::Contains("likely root cause: swap (host): on: /dev/sda2 (partition, 8 GiB)") &&
                 Catch::Contains("may come of it: kubelet (kubelet)") &&
                 Catch::Contains("swapoff -a"));
  copy.Write("var/lib/kubelet/config.yaml", "failSwapOn: false\n");
  CHECK(FirstCause(copy.Json()) == "kubelet:");
}

TEST_CASE("a tree without PCI devices has a report too", "[node]") {
  FakeTree fake;
  fake.Remove("sys").Write("proc/swaps", kSwapOn);
  const ProgramResult result = RunAgent({"doctor", "--root", fake.root().string()}, {"LC_ALL=C"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("FAIL reading") && Catch::Contains("swap"));
}

TEST_CASE("a kubelet's file that is broken is a finding", "[node]") {
  Copy copy;
  copy.Write("var/lib/kubelet/config.yaml", "failSwapOn: [\n");
  const Report report = copy.Json();
  CHECK(StateOf(report, "configuration") == "warn");
  CHECK_THAT(Find(report, "configuration")->at("read").get<std::string>(),
             Catch::Contains("/var/lib/kubelet/config.yaml:"));
}

}  // namespace
}  // namespace vfio_agent
