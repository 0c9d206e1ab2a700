// What a claim has is held whatever becomes of the configuration, also over a restart.
#include "test/agent/dra_node.h"

namespace vfio_agent {
namespace {

using Catch::Contains;
constexpr absl::Duration kLong = DraNode::kLong;
constexpr const char* kUnit = DraNode::kUnit;
constexpr char kWho[] = "ResourceClaim team/vm-gpu";

// Prepared by an agent that was killed; another configuration since.
std::string Release(const DraNode& dra, int exit_code) {
  const ProgramResult result = dra.node.Run({"release", kUnit, "--config", dra.config});
  INFO(result.out << result.err);
  CHECK(result.exit_code == exit_code);
  return result.out + result.err;
}

TEST_CASE("a claim has its device whatever the configuration says of that by now",
          "[dra][node][grpc]") {
  DraNode dra;
  auto daemon = dra.Start();
  REQUIRE(dra.WaitDevices(8));
  REQUIRE(dra.Prepare() == "");
  daemon->Signal(SIGKILL);
  daemon->WaitForEnd(kLong);
  const std::string writes = dra.node.Writes();
  const std::string now = GENERATE("renamed", "excluded", "by the device plugin");
  CAPTURE(now);
  if (now == "renamed") {
    dra.Configure("resources: [{preset: nvidia, serve: dra, domain: example.com}]\n");
    CHECK(dra.StateOf(kUnit) == "held");
  }
  if (now == "excluded") {
    dra.Configure(
        "resources: [{preset: nvidia, serve: dra, exclude: [{address: \"0000:1b:00.0\"}]}]\n");
    CHECK_THAT(dra.node.Run({"list", "--config", dra.config}).err,
               Contains(kWho) && Contains(kUnit) && Contains(kH100));
  }
  if (now == "by the device plugin") dra.Configure("resources: [{preset: nvidia}]\n");
  CHECK_THAT(Release(dra, 3), Contains(kWho));
  CHECK_THAT(dra.node.Run({"explain", kUnit, "--config", dra.config}).out,
             Contains(std::string("held by ") + kWho + ", as " + kH100));

  daemon = dra.Start();
  INFO(daemon->Log());
  if (now == "by the device plugin") {
    CHECK(dra.kubelet->WaitHealthy(kH100, 7, kLong));
    CHECK_FALSE(dra.kubelet->Allocate(kH100, {kUnit}).ok());
  } else {
    CHECK(dra.WaitDevices(now == "renamed" ? 8 : 7));
  }
  CHECK(dra.Prepare() == "");
  CHECK(dra.node.Writes() == writes);
  CHECK(dra.Unprepare() == "");
  if (now == "by the device plugin") CHECK(dra.kubelet->WaitHealthy(kH100, 8, kLong));
  if (now == "renamed") {
    CHECK(Eventually([&] { return dra.StateOf(kUnit) == "ready"; }, kLong));
  }
  if (now == "excluded") {
    Release(dra, 0);
    CHECK(dra.node.DriverOf(kUnit) != "vfio-pci");
  }
}

}  // namespace
}  // namespace vfio_agent
