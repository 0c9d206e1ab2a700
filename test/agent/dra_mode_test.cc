// The node's mode where its devices go to claims: they leave the slices before they are given back.
#include "test/agent/dra_node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = DraNode::kLong;
constexpr const char* kUnit = DraNode::kUnit;
const std::string kServed = std::string("mode: vm-passthrough\n") + DraNode::kByClaims;
const std::string kContainer = std::string("mode: container\n") + DraNode::kByClaims;

// How many of the devices in slices new claims may have.
size_t Untainted(const FakeApiServer& api) {
  size_t count = 0;
  for (const nlohmann::json& slice : api.List(DraNode::kSlices)) {
    const nlohmann::json devices = slice.at("spec").value("devices", nlohmann::json::array());
    for (const nlohmann::json& device : devices) count += device.contains("taints") ? 0 : 1;
  }
  return count;
}

bool IsHome(const DraNode& dra) {
  return Eventually([&] { return dra.node.DriverOf(kUnit) == "nvidia"; }, kLong);
}

TEST_CASE("a claim that is prepared holds the switch, and no other gets anything meanwhile",
          "[dra][mode][node][grpc]") {
  DraNode dra(kServed);
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  REQUIRE(dra.Prepare() == "");
  const std::string writes = dra.node.Writes();
  dra.Configure(kContainer);
  daemon->Signal(SIGHUP);
  REQUIRE_FALSE(daemon
                    ->WaitForLine({"event=mode_switching", "mode=container", "waits for",
                                   "ResourceClaim team/vm-gpu"},
                                  kLong)
                    .empty());
  CHECK(dra.api.WaitFor([&] { return Untainted(dra.api) == 0; }, kLong));
  CHECK(dra.node.Writes() == writes);
  CHECK(dra.Prepare() == "");  // its pod may start again
  CHECK(dra.Unprepare() == "");
  CHECK(IsHome(dra));
  CHECK_FALSE(daemon->WaitForLine({"event=mode_ready", "mode=container"}, kLong).empty());
  CHECK(dra.WaitDevices(0));
}

TEST_CASE("nothing is given back that slices still offer", "[dra][mode][node][grpc]") {
  DraNode dra(kServed);
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(8));
  dra.api.Deny("patch resourceslices");
  const std::string writes = dra.node.Writes();
  dra.Configure(kContainer);
  daemon->Signal(SIGHUP);
  REQUIRE_FALSE(
      daemon
          ->WaitForLine({"event=mode_switching", "waits for the API server", "0000:1b:00.0"}, kLong)
          .empty());
  CHECK(Untainted(dra.api) == 8);
  CHECK(dra.node.Writes() == writes);
  dra.api.Allow("patch resourceslices");
  CHECK(IsHome(dra));
  CHECK_FALSE(daemon->WaitForLine({"event=mode_ready", "mode=container"}, kLong).empty());
}

TEST_CASE("what a killed agent has left in slices leaves them before an agent gives it back",
          "[dra][mode][node][grpc]") {
  DraNode dra(kServed);
  auto daemon = dra.Start();
  REQUIRE(dra.WaitDevices(8));
  daemon->Signal(SIGKILL);
  daemon->WaitForEnd(kLong);
  dra.api.Deny("delete resourceslices");
  dra.Configure(kContainer);
  const std::string writes = dra.node.Writes();
  daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE_FALSE(
      daemon
          ->WaitForLine({"event=mode_switching", "mode=container", "waits for the API server"},
                        kLong)
          .empty());
  CHECK(dra.node.Writes() == writes);
  dra.api.Allow("delete resourceslices");
  CHECK(dra.WaitDevices(0));
  CHECK(IsHome(dra));
}

}  // namespace
}  // namespace vfio_agent
