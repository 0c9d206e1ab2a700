// Resources by dynamic resource allocation: the daemon on a simulated node, with a fake API server,
// the device-plugin side of a fake kubelet, and its DRA side.
#include "test/agent/dra_node.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kLong = DraNode::kLong;
constexpr const char* kUnit = DraNode::kUnit;
constexpr const char* kClaim = DraNode::kClaim;

TEST_CASE("what is served by DRA is published, and is no resource of the kubelet",
          "[dra][node][grpc]") {
  const DraNode dra;
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  CHECK(dra.api.List(DraNode::kSlices)[0].at("spec").at("nodeName") == "node-1");
  const auto driver = dra.Register();
  CHECK(daemon->CountLines({"event=registered"}) == 0);
  CHECK(dra.node.RunJson({"list", "resources", "--config", dra.config})
            .at("resources")[0]
            .at("serve") == "dra");
}

TEST_CASE("a node that serves by claims alone is ready by its labels and its condition",
          "[dra][node][grpc]") {
  const DraNode dra;
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  const auto driver = dra.Register();
  CHECK(Eventually([&] { return dra.Condition("status") == "True"; }, kLong));
  CHECK(dra.Condition("reason") == "Serving");
  const auto label = [&](const std::string& key) {
    return dra.api.Get("/api/v1/nodes/node-1").at("metadata").at("labels").value(key, "");
  };
  CHECK(Eventually([&] { return label("vfio-agent/passthrough.ready") == "true"; }, kLong));
  CHECK(label("vfio-agent/GH100_H100_SXM5_80GB.units") == "8");
  CHECK(label("vfio-agent/GH100_H100_SXM5_80GB.healthy") == "8");
}

TEST_CASE("slices that the API server refuses make the node unready, with the rule that lacks",
          "[dra][node][grpc]") {
  DraNode dra;
  dra.api.Deny("patch resourceslices");
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  const auto driver = dra.Register();
  CHECK(Eventually([&] { return dra.Condition("reason") == "NotRegistered"; }, kLong));
  CHECK_THAT(dra.Condition("message"),
             Catch::Contains("resourceslices of resource.k8s.io: create"));
  const Json resource = dra.node.RunJson({"status"}).at("resources")[0];
  CHECK(resource.at("registered") == false);
  CHECK_THAT(resource.at("last_error"), Catch::Contains("cannot publish ResourceSlices"));
  const ProgramResult doctor = dra.node.Run({"doctor", "--config", dra.config});
  CHECK_THAT(doctor.out, Catch::Contains("HTTP 403"));
  dra.api.Allow("patch resourceslices");
  CHECK(Eventually([&] { return dra.Condition("reason") == "Serving"; }, absl::Minutes(2)));
}

TEST_CASE("a claim that is refused is an Event of the node and of the pod that waits for it",
          "[dra][node][grpc]") {
  DraNode dra;
  dra.api.Merge(
      kClaim,
      {{"status",
        {{"reservedFor", Json::array({{{"resource", "pods"}, {"name", "vm"}, {"uid", "u-7"}}})},
         {"allocation", {{"devices", {{"results", Json::array()}}}}}}}});
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  REQUIRE(dra.Prepare() != "");
  const auto told = [&](const char* where, const std::string& about) {
    return Eventually(
        [&] {
          for (const Json& event : dra.api.List(where)) {
            if (event.at("reason") == "ClaimRefused" && event.at("regarding").at("name") == about) {
              return true;
            }
          }
          return false;
        },
        kLong);
  };
  CHECK(told("/apis/events.k8s.io/v1/namespaces/team/events", "vm"));
  CHECK(told("/apis/events.k8s.io/v1/namespaces/default/events", "node-1"));
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
