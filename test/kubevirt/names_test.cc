// Names that a configuration gives: what would not work is refused before anything starts.
#include <catch2/catch.hpp>

#include "agent/config/config.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string ErrorOf(const std::string& yaml) {
  const auto config = ParseConfig(yaml, "c.yaml");
  return config.ok() ? "valid" : Message(config.status());
}

std::string TwoNames(const std::string& first, const std::string& second) {
  return "resources:\n- name: " + first + "\n  select: [{vendor: '10de'}]\n- name: " + second +
         "\n  select: [{vendor: '1002'}]\n";
}

TEST_CASE(
    "R45: two configured names that give one variable are refused with the second one's "
    "place",
    "[kubevirt]") {
  CHECK(ErrorOf(TwoNames("nvidia.com/tesla.t4", "nvidia.com/TESLA_T4")) ==
        "c.yaml:4:9: resources[1].name: 'nvidia.com/TESLA_T4' and 'nvidia.com/tesla.t4' of "
        "resources[0] would share the variable PCI_RESOURCE_NVIDIA_COM_TESLA_T4");
  CHECK_THAT(ErrorOf(TwoNames("a.b/c", "a.b/C")), Catch::StartsWith("c.yaml:4:9: "));
  CHECK_THAT(ErrorOf(TwoNames("nvidia.com/a", "nvidia/com.a")),
             Catch::Contains("PCI_RESOURCE_NVIDIA_COM_A"));
}

TEST_CASE("R45: a hyphen is no underscore, and one name in two entries is one resource",
          "[kubevirt]") {
  CHECK(ErrorOf(TwoNames("nvidia.com/tesla-t4", "nvidia.com/tesla_t4")) == "valid");
  CHECK(ErrorOf(TwoNames("nvidia.com/t4", "nvidia.com/t4")) == "valid");
  CHECK(ErrorOf(TwoNames("''", "nvidia.com/t4")) == "valid");
}

TEST_CASE("R5: a name that the kubelet would not take is refused with its place", "[kubevirt]") {
  const std::string name =
      GENERATE(as<std::string>(), "no-slash", "nvidia.com/", "/t4", "NVIDIA.com/t4",
               "requests.nvidia.com/t4", "a.kubernetes.io/t4", "nvidia.com/-t4", "nvidia.com/t4_",
               "nvidia.com/a/b", "nvidia.com/a b");
  CAPTURE(name);
  CHECK_THAT(ErrorOf("resources:\n- name: " + name + "\n  select: [{vendor: '10de'}]\n"),
             Catch::StartsWith("c.yaml:2:9: resources[0].name: ") && Catch::Contains(name));
}

TEST_CASE("R5: a name's last part may have 63 characters and not 64", "[kubevirt]") {
  const auto with = [](size_t length) {
    return ErrorOf("resources: [{name: nvidia.com/" + std::string(length, 'a') +
                   ", select: [{vendor: '10de'}]}]");
  };
  CHECK(with(63) == "valid");
  CHECK_THAT(with(64), Catch::StartsWith("c.yaml:1:20: resources[0].name: "));
}

TEST_CASE("R54: a configured name is kept byte for byte", "[kubevirt]") {
  const auto config = ParseConfig(
      "resources: [{name: site-a.example.com/Accel-any.1, select: [{vendor: '10de'}]}]", "c.yaml");
  REQUIRE(config.ok());
  CHECK(config->policy.resources.front().name == "site-a.example.com/Accel-any.1");
}

}  // namespace
}  // namespace vfio_agent
