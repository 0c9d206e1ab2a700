// `topology --guest` on recorded machines.
#include <sstream>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST_CASE("eight GPUs with their NICs: a switch for each pair, an expander for each node",
          "[node]") {
  const Node node("hgx-8gpu");
  const ProgramResult result =
      node.Run({"topology", "--guest", "libvirt", kH100, "18:00.0", "40:00.0", "4f:00.0", "5e:00.0",
                "9a:00.0", "c0:00.0", "ce:00.0", "dc:00.0"});
  CHECK(result.exit_code == 0);
  const std::string& xml = result.out;
  CHECK(Count(xml, "model='pcie-expander-bus'") == 2);
  CHECK(Count(xml, "model='pcie-root-port'") == 8);
  CHECK(Count(xml, "model='pcie-switch-upstream-port'") == 8);
  CHECK(Count(xml, "model='pcie-switch-downstream-port'") == 16);
  CHECK(Count(xml, "<hostdev ") == 16);
  CHECK(Count(xml, "<cell id=") == 2);
  CHECK_THAT(xml, Catch::Contains("<memnode cellid='1' mode='strict' nodeset='1'/>") &&
                      Catch::Contains("<vcpupin vcpu='8'"));
  // Each expander, 4 root ports, 4 upstream and 8 downstream ports: 17 buses, from the top.
  CHECK_THAT(xml, Catch::Contains("busNr='222'") && Catch::Contains("busNr='239'"));
  CHECK_THAT(xml, Catch::Contains("switch 0000:16:00.0 of the host"));
}

TEST_CASE("without a selector the guest gets what is selected, and hears of the NICs beside it",
          "[node]") {
  const Node node("hgx-8gpu");
  const std::string xml = node.Run({"topology", "--guest", "libvirt"}).out;
  CHECK(Count(xml, "<hostdev ") == 8);
  CHECK(Count(xml, "model='pcie-switch-upstream-port'") == 0);
  CHECK_THAT(xml, Catch::Contains("NIC2 (0000:18:00.0) is below the same switch as GPU0"));
}

TEST_CASE("a guest with modules of a board is told of the fabric manager, one with cards is not",
          "[node]") {
  const Node node("hgx-8gpu");
  const auto target = GENERATE(as<std::string>(), "libvirt", "kubevirt");
  CAPTURE(target);
  const std::string text = node.Run({"topology", "--guest", target}).out;
  CHECK_THAT(text, Catch::Contains("NVLink board H100/H200/H800/H20 SXM: ") &&
                       Catch::Contains("fabric manager") && Catch::Contains("error 802"));
  const std::string nic = node.Run({"topology", "--guest", target, "18:00.0"}).out;
  CHECK_THAT(nic, !Catch::Contains("fabric manager"));
}

TEST_CASE("no sentence of the topology is wider than 100 columns", "[node]") {
  const Node node("hgx-8gpu");
  const auto words = GENERATE(std::vector<std::string>{"topology"},
                              std::vector<std::string>{"topology", "--guest", "libvirt"},
                              std::vector<std::string>{"topology", "--guest", "kubevirt"});
  std::istringstream lines(node.Run(words).out);
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  CHECK(longest > 80);
  CHECK(longest <= 100);
}

TEST_CASE("the other functions of a slot go with the GPU", "[node]") {
  const Node node("mixed-8gpu");
  const std::string xml = node.Run({"topology", "--guest", "libvirt", "01:00.0"}).out;
  CHECK(Count(xml, "<hostdev ") == 2);
  CHECK_THAT(xml, Catch::Contains("function='0x0' multifunction='on'/>") &&
                      Catch::Contains("<!-- moves with its slot -->"));
}

TEST_CASE("what is refused or not selected is said in the document", "[node]") {
  const Node node("hgx-8gpu");
  const std::string xml = node.Run({"topology", "--guest", "libvirt", "18:00.0"}).out;
  CHECK_THAT(xml, Catch::Contains("not selected by the configuration"));
  const Node off("server-broadwell-2x-p100-acs-bits-iommu-off");
  CHECK_THAT(off.Run({"topology", "--guest", "libvirt"}).out,
             Catch::Contains("refused as it is now (see `vfio-agent explain`): 0000:04:00.0, "
                             "0000:82:00.0"));
}

TEST_CASE("for KubeVirt: what it can express, and what it cannot", "[node]") {
  const Node node("hgx-8gpu");
  const std::string alone = node.Run({"topology", "--guest", "kubevirt"}).out;
  CHECK(Count(alone, "deviceName: nvidia.com/GH100_H100_SXM5_80GB") == 8);
  CHECK_THAT(alone, Catch::Contains("guestMappingPassthrough: {}") &&
                        Catch::Contains("PCINUMAAwareTopology") &&
                        !Catch::Contains("Not possible"));
  const std::string config = node.dir().Write("config.yaml", R"(
resources:
  - select: [{vendor: "10de", class: ["0302"]}]
  - name: site.example.com/rail
    select: [{address: "0000:18:00.0"}]
guard: {override: ["0000:18:00.0"]}
)");
  const std::string pair =
      node.Run({"topology", "--guest", "kubevirt", "1b:00.0", "18:00.0", "--config", config}).out;
  CHECK_THAT(pair, Catch::Contains("Not possible: virtual PCIe switches") &&
                       Catch::Contains("GPU0-NIC0 PIX") &&
                       Catch::Contains("NCCL_NET_GDR_LEVEL=PHB"));
  CHECK_THAT(pair, Catch::Contains("hostDevices:\n            - name: device1\n"
                                   "              deviceName: site.example.com/rail\n"));
}

TEST_CASE("where nothing is selected, the guest's devices have to be named", "[node]") {
  const Node node("supermicro-epyc-no-gpu");
  CHECK(node.Run({"topology", "--guest", "libvirt"}).exit_code == 2);
  const Node off("hgx-b200-8gpu-cx7-switch-chains");
  CHECK_THAT(off.Run({"topology", "--guest", "kubevirt"}).out,
             Catch::Contains("serves none of these devices"));
}

}  // namespace
}  // namespace vfio_agent
