// `vfio-agent kubevirt` as people and scripts run it.
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr char kOnlyH100[] = R"(
kind: KubeVirt
spec:
  configuration:
    permittedHostDevices:
      pciHostDevices:
        - {pciVendorSelector: "10de:2330", resourceName: nvidia.com/GH100_H100_SXM5_80GB, externalResourceProvider: true}
)";

TEST_CASE("what kubevirt prints is what kubevirt --diff wants", "[node]") {
  const Node node("mixed-8gpu");
  const ProgramResult printed = node.Run({"kubevirt"});
  REQUIRE(printed.exit_code == 0);
  const std::string file = node.dir().Write("cr.yaml", printed.out);
  const ProgramResult compared = node.Run({"kubevirt", "--diff", file});
  INFO(printed.out << compared.out << compared.err);
  CHECK(compared.exit_code == 0);
  CHECK_THAT(compared.out, Catch::Contains("VirtualMachine example: would start"));
  CHECK(node.Writes().empty());
}

TEST_CASE("kubevirt --diff tells by exit code 3 what would not start", "[node]") {
  const Node node("mixed-8gpu");
  const std::string file = node.dir().Write("cr.yaml", kOnlyH100);
  const ProgramResult compared = node.Run({"kubevirt", "--diff", file});
  CHECK(compared.exit_code == 3);
  CHECK_THAT(compared.out, Catch::Contains("nvidia.com/AD102_GEFORCE_RTX_4090: would not start\n"
                                           "  entry-missing: ") &&
                               Catch::Contains("nvidia.com/GH100_H100_SXM5_80GB: would start\n"));
  SECTION("a selector narrows it") {
    CHECK(node.Run({"kubevirt", "--diff", file, kH100}).exit_code == 0);
    CHECK(node.Run({"kubevirt", "10de:2684", "--diff", file}).exit_code == 3);
  }
  SECTION("the document says the same") {
    const nlohmann::json document = node.RunJson({"kubevirt", "--diff", file});
    CHECK(document.at("schema") == "vfio-agent/kubevirt/v1");
    CHECK(document.at("compared").size() == 2);
  }
}

TEST_CASE("kubevirt --diff of a bad file is exit code 2, with its place", "[node]") {
  const Node node("cases/VIA-05");
  const std::string file = node.dir().Write("cr.yaml", "kind: KubeVirt\nspec: [1]\n");
  const ProgramResult result = node.Run({"kubevirt", "--diff", file});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("cr.yaml:2:7: spec: want keys and values"));
  CHECK(node.Run({"kubevirt", "--diff", file + ".none"}).exit_code == 2);
}

TEST_CASE("kubevirt -o json is one document with a schema", "[node]") {
  const Node node("hgx-8gpu");
  const nlohmann::json document = node.RunJson({"kubevirt"});
  CHECK(document.at("schema") == "vfio-agent/kubevirt/v1");
  CHECK(document.at("permitted_host_devices").at("pciHostDevices") ==
        nlohmann::json::array({{{"pciVendorSelector", "10DE:2330"},
                                {"resourceName", kH100},
                                {"externalResourceProvider", true}}}));
  CHECK(document.at("machine_devices").at("gpus").at(0).at("deviceName") == kH100);
  CHECK(document.at("resources").at(0).at("units") == 8);
  CHECK(document.at("feature_gates").empty());
}

TEST_CASE("kubevirt with a selector that fits nothing is exit code 2", "[node]") {
  const Node node("cases/VIA-05");
  CHECK(node.Run({"kubevirt", "10de:ffff"}).exit_code == 2);
}

TEST_CASE("R45: config check refuses two names of one variable, with exit code 2", "[node]") {
  const ScratchDir dir;
  const std::string file = dir.Write("c.yaml",
                                     "resources:\n- {name: a.b/t4, select: [{vendor: '10de'}]}\n"
                                     "- {name: a.b/T4, select: [{vendor: '1002'}]}\n");
  const ProgramResult result = RunAgent({"config", "check", "--config", file});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("c.yaml:3:10: resources[1].name: 'a.b/T4' and 'a.b/t4'"));
}

TEST_CASE("T20: a unit's id is its device's address, whatever its group's number is",
          "[node][grpc]") {
  const Node node("cases/VIA-11");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(Eventually([&] { return !kubelet->Resources().empty(); }, absl::Seconds(30)));
  const std::string resource = kubelet->Resources().begin()->first;
  REQUIRE(kubelet->WaitHealthy(resource, 2, absl::Seconds(30)));  // two units of one group
  const FakeResources resources = kubelet->Resources();
  for (const auto& entry : resources.at(resource).devices) {
    CHECK(std::filesystem::exists(node.root() + "/sys/bus/pci/devices/" + entry.first));
  }
}

}  // namespace
}  // namespace vfio_agent
