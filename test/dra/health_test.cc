#include "deviceplugin/dra/dra_health.h"

#include <catch2/catch.hpp>

#include "deviceplugin/dra/dra_server.h"
#include "deviceplugin/grpc/quiet_grpc.h"
#include "test/dra/scratch.h"
#include "test/kubelet/fake_dra.h"

namespace vfio_agent {
namespace {

class NoHandler final : public ClaimHandler {
 public:
  void Prepare(const ClaimRef&, Prepared done) override { done(absl::UnimplementedError("")); }
  absl::Status Unprepare(const ClaimRef&) override { return absl::OkStatus(); }
};

TEST_CASE("health is said again before the kubelet takes it for unknown", "[dra]") {
  CHECK(2 * kHealthAgain < kHealthTimeout);
  const QuietGrpc quiet;
  const Scratch scratch;
  NoHandler handler;
  PublishedHealth health;
  health.Set({{.pool = "node-1", .device = "a", .healthy = true}});
  const auto server = DraServer::Start({.driver = "vfio-agent",
                                        .registry_dir = scratch.path(),
                                        .handler = &handler,
                                        .health = &health,
                                        .told = [](const absl::Status&) {},
                                        .health_again = absl::Milliseconds(20)});
  REQUIRE(server.ok());
  FakeDra kubelet({.dir = scratch.path()});
  REQUIRE(kubelet.Register("vfio-agent", absl::Seconds(20)) == "");
  kubelet.WatchHealth();
  CHECK(kubelet.WaitMessages(4, absl::Seconds(20)));
  // A stream that the kubelet ends leaves the next one alone.
  kubelet.WatchHealth();
  CHECK(kubelet.WaitMessages(8, absl::Seconds(20)));
}

TEST_CASE("a list that says the same is no news", "[dra]") {
  PublishedHealth health;
  int told = 0;
  const int token = health.Add([&told] { ++told; });
  health.Set({{.pool = "p", .device = "a"}});
  health.Set({{.pool = "p", .device = "a"}});
  CHECK(told == 1);
  health.Remove(token);
  health.Set({});
  CHECK(told == 1);
}

}  // namespace
}  // namespace vfio_agent
