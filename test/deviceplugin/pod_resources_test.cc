// What the kubelet says about pods, and what is made of it.
#include "deviceplugin/kubelet/pod_resources.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_format.h"
#include "catch2/catch.hpp"
#include "test/deviceplugin/pod_node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// Addresses from 0000:00:00.0 on, in order.
std::vector<std::string> Addresses(uint32_t count) {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < count; ++i) {
    all.push_back(
        absl::StrFormat("%04x:%02x:%02x.%x", i >> 16, i >> 8 & 0xff, i >> 3 & 0x1f, i & 7));
  }
  return all;
}

TEST_CASE("a node without a kubelet has no claims, and that is known", "[deviceplugin][grpc]") {
  PodNode node;
  fs::remove(node.place.device_plugin_dir);
  fs::remove(node.dir.path() + "/pod-resources");
  CHECK(node.Read() == PodClaims());
}

TEST_CASE("either directory makes a kubelet, whose missing socket leaves the claims unknown",
          "[deviceplugin][grpc]") {
  PodNode node;
  fs::remove(GENERATE(false, true) ? node.place.device_plugin_dir
                                   : node.dir.path() + "/pod-resources");
  const PodClaims claims = node.Read();
  CHECK_FALSE(claims.known);
  CHECK(claims.list.empty());
  CHECK(claims.why_unknown ==
        node.NoAnswer("there is no such socket. Either the kubelet is down, or its root directory "
                      "is another one, or that is not mounted into this container"));
}

TEST_CASE("a directory that cannot be looked at may be a kubelet's", "[deviceplugin][grpc]") {
  PodNode node;
  fs::remove(node.place.device_plugin_dir);
  fs::remove(node.dir.path() + "/pod-resources");
  fs::create_symlink("device-plugins", node.place.device_plugin_dir);  // ELOOP
  CHECK_FALSE(node.Read().known);
}

TEST_CASE("each device of each container of each pod is a claim, sorted", "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("vms", "b", "compute", kGpu, {"0000:91:00.0", "0000:11:00.0"});
  node.kubelet.SetPod("vms", "b", "compute", "nvidia.com/X", {"0000:21:00.0"});
  node.kubelet.SetPod("vms", "b", "sidecar", kGpu, {"0000:31:00.0"});
  node.kubelet.SetPod("a", "z", "compute", kGpu, {"10000:e1:00.0"});
  CHECK(node.Read() == PodClaims{.list = {{"a", "z", "compute", kGpu, "10000:e1:00.0"},
                                          {"vms", "b", "compute", kGpu, "0000:11:00.0"},
                                          {"vms", "b", "compute", kGpu, "0000:91:00.0"},
                                          {"vms", "b", "compute", "nvidia.com/X", "0000:21:00.0"},
                                          {"vms", "b", "sidecar", kGpu, "0000:31:00.0"}}});
}

TEST_CASE("pods of other managers of devices are told apart, whether they have devices or not",
          "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("ops", "nvidia-vfio-manager-x7k2p", "main", kGpu, {});
  node.kubelet.SetPod("ops", "nvidia-kubevirt-gpu-dp-daemonset-q4wzx", "main", kGpu,
                      {"0000:11:00.0"});
  node.kubelet.SetPod("team", "vm", "compute", kGpu, {"0000:91:00.0"});
  const PodClaims claims = node.Read();
  CHECK(claims.rivals == std::vector<std::string>{"ops/nvidia-kubevirt-gpu-dp-daemonset-q4wzx",
                                                  "ops/nvidia-vfio-manager-x7k2p"});
  CHECK(claims.list.size() == 2);
}

TEST_CASE("a mediated device is claimed by its uuid, as the kernel spells it",
          "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("vms", "a", "compute", kGpu, {"00000000-3B00-8f10-8000-25c9eaaff85a"});
  CHECK(node.Read().list == std::vector<PodClaim>{{"vms", "a", "compute", kGpu,
                                                   "00000000-3b00-8f10-8000-25c9eaaff85a"}});
}

TEST_CASE("a pod that is gone has no claims any more", "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("vms", "a", "compute", kGpu, {"0000:11:00.0"});
  node.kubelet.SetPod("vms", "b", "compute", kGpu, {"0000:91:00.0"});
  REQUIRE(node.Read().list.size() == 2);
  REQUIRE(node.kubelet.RemovePod("vms", "a"));
  CHECK(node.Read().list == std::vector<PodClaim>{{"vms", "b", "compute", kGpu, "0000:91:00.0"}});
}

TEST_CASE("what the kubelet counts as healthy is told by resource", "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  const PodClaims claims = ReadPodClaims(node.place, absl::Seconds(20));
  REQUIRE(claims.allocatable.has_value());
  CHECK(claims.allocatable->empty());  // tenants_test has a plugin besides
}

TEST_CASE("an id that is no address is another plugin's", "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("vms", "a", "compute", "x.org/y",
                      {"", "29", "11:00.0", "kvm0", "0000:11:00.8", "0000:11:00.0\n",
                       std::string(100000, '0') + ":11:00.0", "0000:AF:00.1"});
  CHECK(node.Read() == PodClaims{.list = {{"vms", "a", "compute", "x.org/y", "0000:af:00.1"}}});
}

TEST_CASE("a name that is longer than Kubernetes allows is cut, and its claim stays",
          "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("vms", std::string(1000, 'p'), "compute", kGpu, {"0000:11:00.0"});
  const PodClaims claims = node.Read();
  REQUIRE(claims.list.size() == 1);
  CHECK(claims.list[0].pod == std::string(317, 'p') + "...");
  CHECK(claims.list[0].unit == "0000:11:00.0");
}

TEST_CASE("10,000 devices are read whole", "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  const std::vector<std::string> ids = Addresses(10000);
  node.kubelet.SetPod("vms", "a", "compute", kGpu, ids);
  const PodClaims claims = node.Read();
  CHECK(claims.known);
  REQUIRE(claims.list.size() == ids.size());
  CHECK(std::ranges::equal(claims.list, ids, {}, &PodClaim::unit));
}

TEST_CASE("an answer may have up to 16 MiB, and nothing is known from more",
          "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  const size_t mebibytes = GENERATE(as<size_t>(), 15, 17);
  node.kubelet.SetPod("vms", "a", "compute", kGpu, {"0000:11:00.0"});
  node.kubelet.SetPod("x", "y", "z", "x.org/y",
                      std::vector<std::string>(mebibytes, std::string(1 << 20, 'x')));
  const PodClaims claims = node.Read();
  CHECK(claims.known == (mebibytes < 16));
  CHECK(claims.list.size() == (mebibytes < 16 ? 1 : 0));
  if (!claims.known) CHECK_THAT(claims.why_unknown, Catch::Contains("RESOURCE_EXHAUSTED"));
}

TEST_CASE("nothing is known from more than 65,536 claims", "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  const uint32_t count = GENERATE(as<uint32_t>(), 65536, 65537);
  node.kubelet.SetPod("vms", "a", "compute", kGpu, Addresses(count));
  const PodClaims claims = node.Read();
  CHECK(claims.known == (count == 65536));
  CHECK(claims.list.size() == (claims.known ? count : 0));
  if (!claims.known) CHECK_THAT(claims.why_unknown, Catch::Contains("more than 65536 devices"));
}

}  // namespace
}  // namespace vfio_agent
