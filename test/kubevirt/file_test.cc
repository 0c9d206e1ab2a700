// Reading what others wrote for KubeVirt.
#include "agent/kubevirt/file.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto file = ParseKubevirtFile(text, "f.yaml");
  return file.ok() ? "valid" : Message(file.status());
}

constexpr char kResource[] = R"(
apiVersion: kubevirt.io/v1
kind: KubeVirt
metadata: {name: kubevirt, managedFields: [{f: {g: {}}}]}
spec:
  configuration:
    developerConfiguration: {featureGates: [HostDevices, Snapshot], logVerbosity: {virtAPI: 2}}
    permittedHostDevices:
      pciHostDevices:
        - {pciVendorSelector: "10DE:2330", resourceName: nvidia.com/A, externalResourceProvider: true}
        - {pciVendorSelector: "10DE:2331", resourceName: nvidia.com/B}
      mediatedDevices:
        - {mdevNameSelector: "GRID T4-1Q", resourceName: nvidia.com/C}
)";

TEST_CASE("a KubeVirt resource is read with its gates and entries", "[kubevirt]") {
  const auto file = ParseKubevirtFile(kResource, "f.yaml");
  REQUIRE(file.ok());
  REQUIRE(file->configurations.size() == 1);
  const KubevirtConfiguration& configuration = file->configurations.front();
  CHECK(configuration.restricts);
  CHECK(configuration.feature_gates == std::set<std::string>{"HostDevices", "Snapshot"});
  REQUIRE(configuration.permitted.size() == 3);
  CHECK(configuration.permitted[0].external);
  CHECK(configuration.permitted[0].selector == "10DE:2330");
  CHECK_THAT(configuration.permitted[0].where, Catch::StartsWith("f.yaml:10:11: "));
  CHECK_FALSE(configuration.permitted[1].external);
  CHECK_FALSE(configuration.permitted[2].pci);
}

TEST_CASE("JSON, a List and the configuration alone say the same as the resource", "[kubevirt]") {
  const std::string inner =
      R"({"permittedHostDevices": {"pciHostDevices": [{"pciVendorSelector": "10DE:2330",)"
      R"( "resourceName": "a/b", "externalResourceProvider": true}]}})";
  const std::string whole = R"({"kind": "KubeVirt", "spec": {"configuration": )" + inner + "}}";
  const std::vector<std::string> texts = {inner,
                                          whole,
                                          R"({"kind": "List", "items": [)" + whole + "]}",
                                          R"({"kind": "KubeVirtList", "items": [)" + whole + "]}",
                                          R"({"configuration": )" + inner + "}",
                                          R"({"spec": {"configuration": )" + inner + "}}",
                                          "kind: ConfigMap\n---\n" + whole};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const auto file = ParseKubevirtFile(text, "f.json");
    REQUIRE(file.ok());
    REQUIRE(file->configurations.size() == 1);
    REQUIRE(file->configurations.front().permitted.size() == 1);
    CHECK(file->configurations.front().permitted.front().resource == "a/b");
  }
}

TEST_CASE("machines are read with both of their lists", "[kubevirt]") {
  const auto file = ParseKubevirtFile(R"(
kind: VirtualMachine
metadata: {name: m, namespace: n}
spec: {template: {spec: {domain: {devices: {gpus: [{name: g, deviceName: a/b}]}}}}}
---
kind: VirtualMachineInstance
metadata: {name: i}
spec: {domain: {devices: {hostDevices: [{name: h, deviceName: a/c}, {name: d, claimName: x}]}}}
)",
                                      "f.yaml");
  REQUIRE(file.ok());
  REQUIRE(file->machines.size() == 2);
  CHECK(file->machines[0].title == "VirtualMachine n/m");
  REQUIRE(file->machines[0].devices.size() == 1);
  CHECK(file->machines[0].devices[0].resource == "a/b");
  CHECK(file->machines[1].title == "VirtualMachineInstance i");
  REQUIRE(file->machines[1].devices.size() == 2);
  CHECK(file->machines[1].devices[0].list == MachineList::kHostDevices);
  CHECK(file->machines[1].devices[1].claimed);
}

TEST_CASE("permittedHostDevices that is absent or null restricts nothing, an empty one everything",
          "[kubevirt]") {
  const auto restricts = [](const std::string& text) {
    return ParseKubevirtFile(text, "f.yaml")->configurations.front().restricts;
  };
  CHECK_FALSE(restricts("kind: KubeVirt"));
  CHECK_FALSE(restricts("kind: KubeVirt\nspec: {configuration: {permittedHostDevices: null}}"));
  CHECK(restricts("kind: KubeVirt\nspec: {configuration: {permittedHostDevices: {}}}"));
}

TEST_CASE("a file that is none of these is told with its place", "[kubevirt]") {
  struct Wrong {
    const char* text;
    const char* error;
  };
  const Wrong wrong = GENERATE(
      Wrong{"", "f.yaml: want a KubeVirt"}, Wrong{"kind: Pod", "f.yaml: want a KubeVirt"},
      Wrong{"[1, 2]", "f.yaml:1:1: want keys and values"},
      Wrong{"just text", "want keys and values"}, Wrong{"a: [", "f.yaml:"},
      Wrong{"kind: KubeVirt\nspec: 5", "f.yaml:2:7: spec: want keys"},
      Wrong{"permittedHostDevices: {pciHostDevices: 5}", "pciHostDevices: want a list"},
      Wrong{"permittedHostDevices: {pciHostDevices: [{}]}", "[0]: has no resourceName"},
      Wrong{"permittedHostDevices: {pciHostDevices: [{resourceName: [a]}]}",
            "want one plain value"},
      Wrong{"permittedHostDevices: {pciHostDevices: [{resourceName: a, externalResourceProvider: "
            "maybe}]}",
            "want true or false"},
      Wrong{"kind: VirtualMachine\nspec: {template: {spec: {domain: {devices: {gpus: 1}}}}}",
            "gpus: want a list"},
      Wrong{"{kind: KubeVirt, kind: KubeVirt}", "the key occurs twice"});
  CAPTURE(wrong.text);
  CHECK_THAT(ErrorOf(wrong.text), Catch::Contains(wrong.error));
}

TEST_CASE("a file of nothing but brackets, or of aliases of aliases, is refused", "[kubevirt]") {
  CHECK_THAT(ErrorOf(std::string(100'000, '[')), Catch::StartsWith("f.yaml:"));
  CHECK_THAT(ErrorOf("kind: " + std::string(300, '[') + std::string(300, ']')),
             Catch::Contains("nested too deep"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j == 0 ? "" : ", ") + last;
    bomb += "]\n";
  }
  CHECK_THAT(ErrorOf(bomb), Catch::Contains("too many values"));
}

TEST_CASE("a bracket that closes nothing is told, and is no endless file", "[kubevirt]") {
  CHECK_THAT(ErrorOf(R"({"a":}"b","c":["d"]})"), Catch::Contains("a bracket that closes nothing"));
  CHECK_THAT(ErrorOf("kind: KubeVirt\n]"), Catch::StartsWith("f.yaml:"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "---\na: b\n";
  CHECK_THAT(ErrorOf(many), Catch::Contains("more than 1000 documents"));
}

TEST_CASE("a file that cannot be read is an error", "[kubevirt]") {
  CHECK_FALSE(ReadKubevirtFile("/nonexistent/f.yaml").ok());
  CHECK_FALSE(ReadKubevirtFile("/").ok());
  const auto endless = ReadKubevirtFile("/dev/zero");
  CHECK_THAT(Message(endless.status()), Catch::Contains("longer than 4 MiB"));
}

TEST_CASE("names from a file are printed without control characters", "[kubevirt]") {
  const auto file = ParseKubevirtFile(
      "permittedHostDevices: {pciHostDevices: [{resourceName: \"a/\\e[31m\\xff\"}]}", "f.yaml");
  REQUIRE(file.ok());
  const std::string& name = file->configurations.front().permitted.front().resource;
  CHECK(std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; }));
}

}  // namespace
}  // namespace vfio_agent
