#include "iommu/policy/naming.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

ModelNames ReadIds(const std::string& text, const std::set<DeviceId>& ids) {
  FakeTree fake;
  fake.Write("pci.ids", text);
  return *ReadModelNames((fake.root() / "pci.ids").string(), ids);
}

TEST_CASE("a model's name becomes the resource name that NVIDIA's plugin gives", "[iommu]") {
  const auto [model, name] = GENERATE(table<std::string, std::string>({
      {"GH100 [H100 SXM5 80GB]", "GH100_H100_SXM5_80GB"},
      {"GA102 [GeForce RTX 3090]", "GA102_GEFORCE_RTX_3090"},
      {"GA100 [A100 PCIe 80GB]", "GA100_A100_PCIE_80GB"},
      {"TU104GL [Tesla T4]", "TU104GL_TESLA_T4"},
      {"GB202 [GeForce RTX 5090]", "GB202_GEFORCE_RTX_5090"},
      {"GH100 [H200 SXM 141GB]", "GH100_H200_SXM_141GB"},
      {"GH100 [GH200 120GB / 480GB]", "GH100_GH200_120GB___480GB"},
      {"GA107GL [A2 / A16]", "GA107GL_A2___A16"},
      {"GB202GL [RTX PRO 6000 Blackwell Server Edition]",
       "GB202GL_RTX_PRO_6000_BLACKWELL_SERVER_EDITION"},
      {"TU106 [GeForce RTX 2060 Rev. A]", "TU106_GEFORCE_RTX_2060_REV__A"},
      {"GB100 [B200]", "GB100_B200"},
      {"GB100 [HGX GB200]", "GB100_HGX_GB200"},
      {"TU102 USB 3.1 Host Controller", "TU102_USB_3_1_HOST_CONTROLLER"},
      {"GA102 High Definition Audio Controller", "GA102_HIGH_DEFINITION_AUDIO_CONTROLLER"},
      {"GH100 [H100 NVSwitch]", "GH100_H100_NVSWITCH"},
      {"GA104M [GeForce RTX 3070 Mobile / Max-Q]", "GA104M_GEFORCE_RTX_3070_MOBILE___MAXQ"},
  }));
  CHECK(ModelResourceName(model) == name);
}

TEST_CASE("white space of any kind and length is one underscore", "[iommu]") {
  CHECK(ModelResourceName("A \t  B") == "A_B");
}

TEST_CASE("what the kubelet would reject at the ends is trimmed", "[iommu]") {
  CHECK(ModelResourceName(" [Tesla T4]. ") == "TESLA_T4");
  CHECK(ModelResourceName("_A_") == "A");
  CHECK(ModelResourceName("[]()").empty());
  CHECK(ModelResourceName("").empty());
}

TEST_CASE("a name is cut to 63 characters and ends in a letter or digit", "[iommu]") {
  CHECK(ModelResourceName(std::string(81, 'a')) == std::string(63, 'A'));
  CHECK(ModelResourceName(std::string(63, 'a') + " b") == std::string(63, 'A'));
  CHECK(ModelResourceName(std::string(62, 'a') + " b") == std::string(62, 'A'));
}

TEST_CASE("NAME-01: only lines of the vendor's own block name a model", "[iommu]") {
  const ModelNames names = ReadIds(
      "# comment\n"
      "1028  Dell\n"
      "\t0015  PowerEdge Expandable RAID controller 5\n"
      "\t\t1028 1f08  SAS 5/iR Integrated RAID Controller\n"
      "\t\t1f08 1f08  Subsystem\n"
      "10de  NVIDIA Corporation\n"
      "\t1f07  TU106\n"
      "\t\t1f08 0000  A subsystem of another card\n"
      "\t1f08  TU106 [GeForce RTX 2060 Rev. A]\n"
      "8086  Intel Corporation\n"
      "\t1f08  Atom Processor\n",
      {{0x10de, 0x1f08}});
  CHECK(names == ModelNames{{{0x10de, 0x1f08}, "TU106 [GeForce RTX 2060 Rev. A]"}});
  const PciDevice card = Function("0000:82:00.0", 5, "nvidia", "10de:1f08", 0x030000);
  CHECK(ResourceName({}, card, {}, names) == "nvidia.com/TU106_GEFORCE_RTX_2060_REV__A");
}

TEST_CASE("NAME-03: an unknown id is named by its device id, and group 0 is served", "[iommu]") {
  NodeFacts facts = Node({Function("0000:01:00.0", 0, "vfio-pci", "10de:2235", 0x030200),
                          Function("0000:81:00.0", 60, "vfio-pci", "10de:2235", 0x030200)});
  const Plan plan = MakePlan(facts, DefaultPolicy(), {});
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].name == "nvidia.com/2235");
  REQUIRE(plan.resources[0].units.size() == 2);
  CHECK(plan.resources[0].units[0].group == 0);
  CHECK(plan.resources[0].units[0].state == UnitState::kReady);
}

TEST_CASE("NAME-05: the same device id of another vendor does not give its name", "[iommu]") {
  const ModelNames names = ReadIds(
      "10b5  PLX\n\t13f3  ARIEL device 24 function 3\n"
      "10de  NVIDIA Corporation\n\t13f3  GM204GL [Tesla M6]\n"
      "17cb  Qualcomm\n\t13f3  ARIEL device 24 function 3\n",
      {{0x10de, 0x13f3}});
  const PciDevice card = Function("0000:05:00.0", 5, "", "10de:13f3", 0x030200);
  CHECK(ResourceName({}, card, {}, names) == "nvidia.com/GM204GL_TESLA_M6");
}

TEST_CASE("control characters of the list never reach a terminal, nor the resource name",
          "[iommu]") {
  const ModelNames names =
      ReadIds("10de  NVIDIA Corporation\n\t13f3  GM204GL\x1b]0;owned\a\v[Tesla M6]\r\n",
              {{0x10de, 0x13f3}});
  CHECK(names.at({0x10de, 0x13f3}) == "GM204GL?]0;owned? [Tesla M6]");
  const PciDevice card = Function("0000:05:00.0", 5, "", "10de:13f3", 0x030200);
  CHECK(ResourceName({}, card, {}, names) == "nvidia.com/GM204GL0OWNED_TESLA_M6");
}

TEST_CASE("NAME-07: the variable is spelled as KubeVirt spells it, hyphens stay", "[iommu]") {
  const auto [resource, variable] = GENERATE(table<std::string, std::string>({
      {"nvidia.com/tesla-t4", "PCI_RESOURCE_NVIDIA_COM_TESLA-T4"},
      {"nvidia.com/GRID_A100-1-10C", "PCI_RESOURCE_NVIDIA_COM_GRID_A100-1-10C"},
      {"nvidia.com/20b0", "PCI_RESOURCE_NVIDIA_COM_20B0"},
      {"a.b-c.d/x.y_Z", "PCI_RESOURCE_A_B-C_D_X_Y_Z"},
  }));
  CHECK(ResourceVariable(resource) == variable);
}

TEST_CASE("an alias wins over the file, an entry's own name over both", "[iommu]") {
  const PciDevice gpu = Gpu("0000:3b:00.0", 1);
  const Policy policy{.aliases = {{"10de:2330", "H100"}}};
  CHECK(ResourceName({}, gpu, {}, TestNames()) == "nvidia.com/GH100_H100_SXM5_80GB");
  CHECK(ResourceName({}, gpu, policy, TestNames()) == "nvidia.com/H100");
  CHECK(ResourceName({.domain = "example.org"}, gpu, policy, TestNames()) == "example.org/H100");
  CHECK(ResourceName({.name = "a.io/b"}, gpu, policy, TestNames()) == "a.io/b");
  CHECK(ResourceName({}, gpu, {}, {{{0x10de, 0x2330}, "[]"}}) == "nvidia.com/2330");
}

TEST_CASE("our own names cover what older lists lack and win over the file", "[iommu]") {
  FakeTree fake;
  fake.Write("pci.ids", "10de  NVIDIA Corporation\n\t2330  Something else\n\t2204  GA102\n");
  absl::Status error;
  const std::string path = (fake.root() / "pci.ids").string();
  const ModelNames names = FindModelNames(path, {{0x10de, 0x2330}, {0x10de, 0x2204}}, error);
  CHECK(error.ok());
  CHECK(names.at({0x10de, 0x2330}) == "GH100 [H100 SXM5 80GB]");
  CHECK(names.at({0x10de, 0x2204}) == "GA102");
  CHECK(ModelResourceName(OwnModels().at({0x10de, 0x3182})) == "GB110_B300_SXM6");
  for (const auto& [id, model] : OwnModels()) {
    CAPTURE(model);
    CHECK(CheckResourceName("nvidia.com/" + ModelResourceName(model)).ok());
  }
}

TEST_CASE("without the file our own names are left and the error says why", "[iommu]") {
  absl::Status error;
  const ModelNames names = FindModelNames("/nowhere/pci.ids", {{0x10de, 0x2204}}, error);
  CHECK(absl::IsNotFound(error));
  CHECK(names == OwnModels());
}

TEST_CASE("a resource name that the kubelet takes is accepted", "[iommu]") {
  const std::string name = GENERATE(as<std::string>{}, "nvidia.com/GH100_H100", "a/b",
                                    "a.b-c.d0/x.y-z_Z", "nvidia.com/" + std::string(63, 'x'),
                                    std::string(60, 'a') + "." + std::string(60, 'b') + "." +
                                        std::string(60, 'c') + "." + std::string(61, 'd') + "/x");
  CAPTURE(name);
  CHECK(CheckResourceName(name).ok());
}

TEST_CASE("a resource name that the kubelet rejects is refused beforehand", "[iommu]") {
  const std::string name = GENERATE(
      as<std::string>{}, "", "gpu", "/gpu", "nvidia.com/", "nvidia.com/_x", "nvidia.com/x-",
      "nvidia.com/a b", "nvidia.com/a/b", "nvidia.com/" + std::string(64, 'x'), "NVIDIA.com/x",
      "nvidia..com/x", "-nvidia.com/x", "nvidia-.com/x", "nvidia.com-/x", "nvidia_com/x",
      "requests.nvidia.com/x", "kubernetes.io/x", "x.kubernetes.io/y",
      std::string(245, 'a') + "/x");
  CAPTURE(name);
  const absl::Status status = CheckResourceName(name);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).starts_with("resource name '" + name + "': "));
}

}  // namespace
}  // namespace vfio_agent
