// The oracle itself, and what the agent's rules for names and variables give in its hands.
#include "test/kubevirt/launcher.h"

#include <catch2/catch.hpp>

#include "iommu/policy/naming.h"
#include "sysfs/status.h"

namespace vfio_agent::kubevirt {
namespace {

constexpr char kT4[] = "nvidia.com/tesla-t4";
constexpr char kT4Variable[] = "PCI_RESOURCE_NVIDIA_COM_TESLA-T4";

std::string ErrorOf(const Machine& machine, const Variables& variables) {
  const auto devices = StartMachine(machine, variables);
  return devices.ok() ? "starts" : Message(devices.status());
}

TEST_CASE(
    "R41 T13: the variable is the resource in upper case with '/' and '.' replaced, and "
    "hyphens stay",
    "[kubevirt]") {
  const auto [resource, variable] = GENERATE(table<std::string, std::string>({
      {"nvidia.com/GA102GL_A10", "PCI_RESOURCE_NVIDIA_COM_GA102GL_A10"},
      {"nvidia.com/tesla-t4", "PCI_RESOURCE_NVIDIA_COM_TESLA-T4"},
      {"my-site.example.com/a.b_c-d", "PCI_RESOURCE_MY-SITE_EXAMPLE_COM_A_B_C-D"},
      {"a/0", "PCI_RESOURCE_A_0"},
  }));
  CHECK("PCI_RESOURCE_" + VariableSuffix(resource) == variable);
  CHECK(ResourceVariable(resource) == variable);
}

TEST_CASE(
    "R41: a variable is split at commas, without a blank cut and with one trailing comma "
    "forgiven",
    "[kubevirt]") {
  using Items = std::vector<std::string>;
  CHECK(SplitVariable("").empty());
  CHECK(SplitVariable(",").empty());
  CHECK(SplitVariable("a") == Items{"a"});
  CHECK(SplitVariable("a,b,") == Items{"a", "b"});
  CHECK(SplitVariable("a, b") == Items{"a", " b"});
  CHECK(SplitVariable("a,,") == Items{"a", ""});
  CHECK(SplitVariable(",a") == Items{"", "a"});
}

TEST_CASE("R42: an address has four digits of domain, no more and no fewer", "[kubevirt]") {
  const auto [text, good] = GENERATE(table<std::string, bool>({
      {"0000:3b:00.0", true},
      {"ffff:FF:1f.7", true},
      {"10000:01:00.0", false},
      {"000:01:00.0", false},
      {"3b:00.0", false},
      {"0000:3b:00.8", false},
      {"0000:3b:00", false},
      {" 0000:3b:00.0", false},
      {"0000:3b:00.0\n", false},
      {"", false},
  }));
  CAPTURE(text);
  CHECK(IsPciAddress(text) == good);
}

TEST_CASE("each item takes the first address that is left, and what is left over is ignored",
          "[kubevirt]") {
  const auto devices =
      StartMachine(MachineWith(kT4, 2), {{kT4Variable, "0000:01:00.0,0000:02:00.0,0000:03:00.0"}});
  REQUIRE(devices.ok());
  CHECK(*devices ==
        std::vector<GuestDevice>{{"gpu-d1", "0000:01:00.0"}, {"gpu-d2", "0000:02:00.0"}});
}

TEST_CASE("a machine with fewer devices than items does not start", "[kubevirt]") {
  CHECK_THAT(ErrorOf(MachineWith(kT4, 2), {{kT4Variable, "0000:01:00.0"}}),
             Catch::Contains("number of gpus (2) does not match"));
  CHECK_THAT(ErrorOf(MachineWith(kT4, 1), {}), Catch::Contains("does not match"));
  CHECK_THAT(ErrorOf(MachineWith(kT4, 1, false), {{kT4Variable, ""}}),
             Catch::Contains("number of hostDevices (1) does not match"));
}

TEST_CASE("an item that is no address keeps the machine from starting", "[kubevirt]") {
  CHECK_THAT(ErrorOf(MachineWith(kT4, 2), {{kT4Variable, "0000:01:00.0, 0000:02:00.0"}}),
             Catch::Contains("' 0000:02:00.0' is no PCI address"));
  CHECK_THAT(ErrorOf(MachineWith(kT4, 1), {{kT4Variable, "10000:02:00.0"}}),
             Catch::Contains("is no PCI address"));
}

TEST_CASE("a taken address is taken from every resource of the same list", "[kubevirt]") {
  const Machine machine{.gpus = {{"one", "a.b/x"}, {"two", "a.b/y"}}};
  const auto devices = StartMachine(machine, {{"PCI_RESOURCE_A_B_X", "0000:01:00.0"},
                                              {"PCI_RESOURCE_A_B_Y", "0000:01:00.0,0000:02:00.0"}});
  REQUIRE(devices.ok());
  CHECK(devices->back() == GuestDevice{"gpu-two", "0000:02:00.0"});
}

TEST_CASE("R44: two kinds of variable for one resource make two devices of one item",
          "[kubevirt]") {
  CHECK_THAT(ErrorOf(MachineWith(kT4, 1), {{kT4Variable, "0000:01:00.0"},
                                           {"MDEV_PCI_RESOURCE_NVIDIA_COM_TESLA-T4", "uuid"}}),
             Catch::Contains("number of gpus (1) does not match the number of devices (2)"));
  CHECK_THAT(ErrorOf(MachineWith(kT4, 1, false),
                     {{kT4Variable, "0000:01:00.0"}, {"USB_RESOURCE_NVIDIA_COM_TESLA-T4", "1:2"}}),
             Catch::Contains("number of hostDevices (1) does not match the number of devices (2)"));
}

TEST_CASE(
    "T14: a list with audio functions gives the second GPU's place to the first one's audio "
    "function",
    "[kubevirt]") {
  const auto devices = StartMachine(
      MachineWith(kT4, 2), {{kT4Variable, "0000:01:00.0,0000:01:00.1,0000:02:00.0,0000:02:00.1"}});
  REQUIRE(devices.ok());
  CHECK(devices->back().address == "0000:01:00.1");
}

TEST_CASE("T15: a resource in both lists gives one device twice, and the machine does not start",
          "[kubevirt]") {
  Machine machine = MachineWith(kT4, 1);
  machine.host_devices.push_back({.name = "again", .resource = kT4});
  CHECK_THAT(ErrorOf(machine, {{kT4Variable, "0000:01:00.0,0000:02:00.0"}}),
             Catch::Contains("0000:01:00.0 is there twice"));
}

TEST_CASE("R45: two names of one variable are one variable to the launcher", "[kubevirt]") {
  CHECK(VariableSuffix("a.b/c.d") == VariableSuffix("a.b/C_D"));
  CHECK(VariableSuffix("a.b/c-d") != VariableSuffix("a.b/c_d"));
}

}  // namespace
}  // namespace vfio_agent::kubevirt
