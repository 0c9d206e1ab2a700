// Reported failures with virtual functions: test/machines/cases/SRIOV-*.yaml.
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

std::string WriteConfig(const Node& node, const std::string& vendor, const std::string& more) {
  return node.dir().Write("config.yaml", "resources: [{name: example.org/vf, select: [{vendor: \"" +
                                             vendor + "\"}]" + more + "}]\n");
}

TEST_CASE("SRIOV-02: VFs are no whole GPUs unless somebody opted in, then all of one PF are units",
          "[node]") {
  const Node node("cases/SRIOV-02");
  SECTION("by default") {
    const ProgramResult result = node.Run({"bind"});
    CHECK(result.exit_code == 3);
    CHECK_THAT(result.out, Catch::Contains("pf-has-vfs 0001:04:00.0"));
    CHECK(node.Writes().empty());
  }
  SECTION("with sriov: each is taken from the host's driver, up to the last one") {
    const std::string config = WriteConfig(node, "10de", ", sriov: {}");
    const ProgramResult result = node.Run({"bind", "--config", config});
    INFO(result.out << result.err);
    CHECK(result.exit_code == 0);
    const nlohmann::json plan = node.RunJson({"plan", "--config", config});
    REQUIRE(plan["resources"].size() == 1);
    CHECK(plan["resources"][0]["units"].size() == 24);
    CHECK(node.DriverOf("0001:04:03.1") == "vfio-pci");
    CHECK(node.DriverOf("0001:04:00.0") == "nvidia");
  }
  SECTION("another number is not made of what is there") {
    const std::string config = WriteConfig(node, "10de", ", sriov: {vfs: 4}");
    const ProgramResult result = node.Run({"bind", "--config", config, "0001:04:00.0"});
    CHECK(result.exit_code == 3);
    CHECK_THAT(result.out, Catch::Contains("has 24 virtual functions enabled, and sriov.vfs is 4"));
    CHECK(node.Writes().empty());
  }
}

TEST_CASE("SRIOV-04: of an Intel GPU that the host uses, only VFs are given away", "[node]") {
  const Node node("cases/SRIOV-04");
  SECTION("nothing by default") {
    const ProgramResult result = node.Run({"bind"});
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, Catch::Contains("nothing on this node is selected"));
  }
  SECTION("selected as a whole: refused") {
    const ProgramResult result = node.Run({"bind", "--config", WriteConfig(node, "8086", "")});
    CHECK(result.exit_code == 3);
    CHECK_THAT(result.out, Catch::Contains("pf-has-vfs 0000:00:02.0"));
  }
  SECTION("with sriov: the seven VFs, which are bound already") {
    const nlohmann::json plan =
        node.RunJson({"plan", "--config", WriteConfig(node, "8086", ", sriov: {vfs: 7}")});
    CHECK(plan["refusals"].empty());
    REQUIRE(plan["resources"].size() == 1);
    CHECK(plan["resources"][0]["units"].size() == 7);
    CHECK(plan["actions"].empty());
    REQUIRE(plan["warnings"].size() == 7);
    CHECK(plan["warnings"][0]["code"] == "address-too-wide");
    const std::string config = WriteConfig(node, "8086", ", sriov: {vfs: 7}");
    for (const char* command : {"plan", "explain"}) {
      std::vector<std::string> words = {command, "--config", config};
      if (words[0] == "explain") words.emplace_back("0000:00:02.3");
      CHECK_THAT(node.Run(words).out, Catch::Contains("address-too-wide 0000:00:02.3") &&
                                          Catch::Contains("VFIO_MAP_DMA failed") &&
                                          Catch::Contains("host-phys-bits-limit=39"));
    }
  }
  CHECK(node.Writes().empty());
  CHECK(node.DriverOf("0000:00:02.0") == "xe");
}

TEST_CASE("SRIOV-04: no VFs are made of the display that the machine boots with", "[node]") {
  const Node node(Node::MachineText{
      "name: display\nhost: {iommu_active: true, iommu: intel}\ndevices:\n"
      "- {address: \"0000:00:02.0\", vendor: \"8086\", device: \"7d67\", class: \"0x030000\", "
      "driver: xe, iommu_group: 1, sriov_totalvfs: 7, boot_vga: true}\n"});
  const std::string config = WriteConfig(node, "8086", ", sriov: {vfs: 7}");
  const ProgramResult result = node.Run({"bind", "--config", config});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("boot-display 0000:00:02.0"));
  CHECK(node.Writes().empty());
}

}  // namespace
}  // namespace vfio_agent
