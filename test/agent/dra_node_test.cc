// Resources by dynamic resource allocation: the daemon on a simulated node, with a fake API server,
// the device-plugin side of a fake kubelet, and its DRA side.
#include <csignal>
#include <filesystem>

#include "agent/dra/claim_store.h"
#include "test/agent/node.h"
#include "test/apiserver/fake_api_server.h"
#include "test/dra/claim_json.h"
#include "test/kubelet/fake_dra.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kByClaims[] = "resources: [{preset: nvidia, serve: dra}]\n";
constexpr char kUnit[] = "0000:1b:00.0";
constexpr char kClaim[] = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/vm-gpu";

class DraNode {
 public:
  DraNode() {
    std::filesystem::create_directories(node.kubelet_root() + "/plugins_registry");
    api.AddNode("node-1");
    api.WriteServiceAccount(account.path());
    api.Create(kClaim, ClaimJson(claim, {{"gpu", "0000-1b-00-0"}}));
    claim.uid = api.Get(kClaim).at("metadata").at("uid");  // which the server gives
    config = node.dir().Write("config.yaml", kByClaims);
    kubelet = node.StartKubelet();
  }
  std::unique_ptr<Daemon> Start() const {
    return std::make_unique<Daemon>(node.DaemonArguments(
        {"--config", config, "--cdi-dir", node.dir().path() + "/cdi", "--api-server", api.url(),
         "--api-token-file", account.path() + "/token", "--api-ca-file", account.path() + "/ca.crt",
         "--node-name", "node-1"}));
  }
  std::unique_ptr<FakeDra> Register() const {
    auto dra = std::make_unique<FakeDra>(
        FakeDra::Options{.dir = node.kubelet_root() + "/plugins_registry"});
    REQUIRE(dra->Register("vfio-agent", kLong) == "");
    return dra;
  }
  bool WaitDevices(size_t count) const {
    return api.WaitFor(
        [&] {
          size_t devices = 0;
          for (const Json& slice : api.List(kSlices)) {
            devices += slice.at("spec").value("devices", Json::array()).size();
          }
          return devices == count;
        },
        kLong);
  }
  // As the slices have them; null for no such device.
  Json AttributesOf(const std::string& name) const {
    for (const Json& slice : api.List(kSlices)) {
      for (const Json& device : slice.at("spec").value("devices", Json::array())) {
        if (device.at("name") == name) return device.at("attributes");
      }
    }
    return nullptr;
  }
  // "ready", "held" and so on.
  std::string StateOf(const std::string& unit) const {
    const Json list = node.RunJson({"list", "resources", "--config", config});
    for (const Json& resource : list.at("resources")) {
      for (const Json& each : resource.at("units")) {
        if (each.at("id") == unit) return each.at("state");
      }
    }
    return "";
  }

  // What the kubelet was told of the claim: "" or why not.
  std::string Prepare() const {
    const auto answers = Register()->Prepare({claim});
    return answers.ok() ? answers->at(claim.uid).error : std::string(answers.status().message());
  }
  std::string Unprepare() const {
    const auto errors = Register()->Unprepare({claim});
    return errors.ok() ? errors->at(claim.uid) : std::string(errors.status().message());
  }
  bool HasSpec() const {
    return std::filesystem::exists(node.dir().path() + "/cdi/dra-claim_vfio-agent_" + claim.uid +
                                   ".json");
  }

  ClaimRef claim = {.claim_namespace = "team", .name = "vm-gpu"};
  Node node{"hgx-8gpu"};
  FakeApiServer api;
  ScratchDir account;
  std::string config;
  std::unique_ptr<FakeKubelet> kubelet;
};

TEST_CASE("what is served by DRA is published, and is no resource of the kubelet",
          "[dra][node][grpc]") {
  const DraNode dra;
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  CHECK(dra.api.List(kSlices)[0].at("spec").at("nodeName") == "node-1");
  const auto driver = dra.Register();
  CHECK(daemon->CountLines({"event=registered"}) == 0);
  CHECK(dra.node.RunJson({"list", "resources", "--config", dra.config})
            .at("resources")[0]
            .at("serve") == "dra");
}

TEST_CASE("a claim has its device whatever happens to the agent or the API server",
          "[dra][node][grpc]") {
  DraNode dra;
  auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  REQUIRE(dra.Prepare() == "");
  CHECK_FALSE(daemon->WaitForLine({"event=claim_prepared", kUnit}, kLong).empty());
  CHECK(dra.HasSpec());
  SECTION("while the agent runs") {}
  SECTION("after it was killed, and while the API server is away") {
    dra.api.Down();
    daemon->Signal(SIGKILL);
    daemon->WaitForEnd(kLong);
    CHECK(dra.StateOf(kUnit) == "held");
    daemon = dra.Start();
  }
  CHECK(dra.StateOf(kUnit) == "held");
  const ProgramResult release = dra.node.Run({"release", kUnit, "--config", dra.config});
  CHECK(release.exit_code == 3);
  CHECK_THAT(release.out + release.err, Catch::Contains("ResourceClaim team/vm-gpu"));
  CHECK(dra.node.DriverOf(kUnit) == "vfio-pci");

  CHECK(dra.Prepare() == "");
  CHECK(dra.Unprepare() == "");
  CHECK_FALSE(dra.HasSpec());
  CHECK(Eventually([&] { return dra.StateOf(kUnit) == "ready"; }, kLong));
}

TEST_CASE("KUBE-08: what is on vfio-pci when the agent starts is the same device, and is prepared",
          "[dra][node][grpc]") {
  DraNode dra;
  const bool lost = GENERATE(false, true);  // its journal, and what it knew of claims
  CAPTURE(lost);
  const auto forget = [&] {
    if (lost) std::filesystem::remove_all(dra.node.state_dir());
  };
  REQUIRE(dra.node.Run({"bind", "--config", dra.config}).exit_code == 0);
  forget();
  const std::string writes = dra.node.Writes();
  auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  const Json first = dra.AttributesOf("0000-1b-00-0");
  CHECK(first.at("resource.kubernetes.io/pciBusID").at("string") == kUnit);
  CHECK(first.at("resource").at("string") == kH100);
  CHECK(first.at("vfioDriver").at("string") == "vfio-pci");
  REQUIRE(dra.Prepare() == "");
  daemon->Signal(SIGKILL);
  daemon->WaitForEnd(kLong);
  forget();
  daemon = dra.Start();
  CHECK(Eventually([&] { return dra.Prepare() == ""; }, kLong));
  CHECK(dra.StateOf(kUnit) == "held");
  CHECK(dra.HasSpec());
  CHECK(dra.AttributesOf("0000-1b-00-0") == first);
  CHECK(dra.node.Writes() == writes);
}

TEST_CASE(
    "a resource that is served otherwise from now on leaves one list before it is in the other",
    "[dra][node][grpc]") {
  DraNode dra;
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  REQUIRE(dra.Prepare() == "");
  dra.node.dir().Write("config.yaml", "resources: [{preset: nvidia}]\n");
  daemon->Signal(SIGHUP);
  REQUIRE(dra.WaitDevices(0));
  // What the claim has is on the kubelet's list as unhealthy: nobody else can have it.
  CHECK(dra.kubelet->WaitHealthy(kH100, 7, kLong));
  CHECK_FALSE(daemon->WaitForLine({"event=unit_unhealthy", kUnit, "ResourceClaim"}, kLong).empty());
  CHECK(dra.Unprepare() == "");
  CHECK(dra.kubelet->WaitHealthy(kH100, 8, kLong));
}

TEST_CASE("what slices still have is on the kubelet's list as unhealthy", "[dra][node][grpc]") {
  DraNode dra;
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  dra.api.Deny("delete resourceslices");
  dra.node.dir().Write("config.yaml", "resources: [{preset: nvidia}]\n");
  daemon->Signal(SIGHUP);
  REQUIRE_FALSE(
      daemon->WaitForLine({"event=unit_unhealthy", kUnit, "ResourceSlices"}, kLong).empty());
  CHECK(dra.kubelet->WaitHealthy(kH100, 0, kLong));
  dra.api.Allow("delete resourceslices");
  REQUIRE(dra.WaitDevices(0));
  CHECK(dra.kubelet->WaitHealthy(kH100, 8, kLong));
}

TEST_CASE("a claim's record that cannot be read keeps every unit from claims and releases",
          "[dra][node][grpc]") {
  DraNode dra;
  auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  REQUIRE(dra.Prepare() == "");
  daemon->Signal(SIGKILL);
  daemon->WaitForEnd(kLong);
  const std::string name = "state/claims/" + dra.claim.uid + ".json";
  dra.node.dir().Write(name, "{}");
  const ProgramResult release = dra.node.Run({"release", kUnit, "--config", dra.config});
  CHECK(release.exit_code == 3);
  CHECK_THAT(release.out + release.err, Catch::Contains("is no prepared claim"));
  CHECK(dra.node.DriverOf(kUnit) == "vfio-pci");
}

}  // namespace
}  // namespace vfio_agent
