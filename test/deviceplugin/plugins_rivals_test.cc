// Plugins on a node where another plugin wants the same resource.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/grpc/listener.h"
#include "deviceplugin/kubelet/register_call.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/kubelet/stale_sockets.h"
#include "test/deviceplugin/plugin_node.h"

namespace vfio_agent {
namespace {

using Kind = PluginEvent::Kind;
using Generation = FakeKubelet::Generation;

// Serves kGpu as well, as KubeVirt's own plugin does; has registered when it is made.
class Rival {
 public:
  explicit Rival(PluginNode& node) {
    published_.Set(TestOffer(kGpu, {TestUnit("0000:77:00.0")}));
    const std::string name = KubeVirtSocketName(kGpu);
    server_ = *PluginServer::Start(
        node.dir.path() + "/" + name,
        std::make_unique<DevicePluginService>(published_, node.tree.tree(), AskDrivers(), ledger_,
                                              [](const ServiceEvent&) {}));
    const int before = node.Registrations();
    call_ = RegisterCall::Start(node.dir.path() + "/kubelet.sock", kGpu, name,
                                [](const absl::Status&) {});
    registered_ = node.loop.RunUntil(
        [&] { return node.Registrations() > before && Lists(node, "0000:77:00.0"); });
  }
  bool registered() const { return registered_; }
  static bool Lists(const PluginNode& node, const std::string& unit) {
    return node.kubelet.Resources().at(kGpu).devices.contains(unit);
  }
  void Leave() {
    call_.reset();
    server_->Shutdown(absl::InfinitePast());
    server_.reset();
  }

 private:
  Published published_;
  Ledger ledger_;
  std::unique_ptr<PluginServer> server_;
  std::unique_ptr<RegisterCall> call_;
  bool registered_ = false;
};

TEST_CASE("R56, T16: KubeVirt's own plugin for our resource is named at once, with the remedy",
          "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  CHECK(node.loop.Count(Kind::kContended) == 0);
  Rival rival(node);
  REQUIRE(rival.registered());
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kContended) == 1; }));
  const PluginEvent& told = node.loop.events().back();
  CHECK(told.resource == kGpu);
  CHECK_THAT(told.text, Catch::Contains("kubevirt-nvidia.com-GA100_A100_PCIE_40GB.sock in " +
                                        node.dir.path()));
  CHECK_THAT(told.remedy, Catch::Contains("externalResourceProvider: true"));

  // It leaves, and up to 1.36 takes us with it although our stream stays open.
  rival.Leave();
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kContentionOver) == 1; }));
  node.loop.Forward(absl::Seconds(4));
  CHECK(node.Serves());
  CHECK(node.loop.Count(Kind::kContended) == 1);
}

TEST_CASE("R56: a stream that is lost again and again is reported once, and asked for slowly",
          "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  for (int loss = 1; loss <= 4; ++loss) {
    CAPTURE(loss);
    REQUIRE(node.Serves());
    REQUIRE(node.Loses(loss));
    CHECK(node.loop.Count(Kind::kContended) == (loss < 3 ? 0 : 1));
    if (loss >= 3) CHECK(node.loop.plugins().NextDeadline() - absl::Now() > absl::Seconds(20));
    node.loop.Forward(loss < 3 ? absl::Seconds(4) : absl::Seconds(38));
  }
  CHECK_THAT(node.loop.LastText(Kind::kContended),
             Catch::Contains("dropped the resource") && Catch::Contains("none is seen"));

  // A stream that lasts: whoever it was has gone.
  REQUIRE(node.Serves());
  node.loop.Forward(absl::Seconds(61));
  CHECK(node.loop.RunUntil([&] { return node.loop.Count(Kind::kContentionOver) == 1; }));
  CHECK(node.loop.plugins().AllRegistered());
}

TEST_CASE("R12, T1, T4: up to 1.36 the end of a rival's stream takes ours down, and we come back",
          "[deviceplugin][grpc]") {
  PluginNode node({.generation = Generation::k136});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  Rival rival(node);
  REQUIRE(rival.registered());
  // The kubelet knows the rival by the resource's name now. Ours registers again, on top of it.
  REQUIRE(std::filesystem::remove(node.Socket()));
  REQUIRE(node.loop.RunUntil([&] { return node.Registrations() == 3; }));
  rival.Leave();
  node.loop.Forward(absl::Seconds(4));
  REQUIRE(node.loop.RunUntil([&] {
    return node.loop.plugins().AllRegistered() && Rival::Lists(node, "0000:11:00.0") &&
           node.kubelet.WaitHealthy(kGpu, 1, absl::ZeroDuration());
  }));
  CHECK(node.kubelet.Allocate(kGpu, {"0000:11:00.0"}).ok());
}

TEST_CASE("R56: KubeVirt's plugin that was there before us is named as well, but not another one",
          "[deviceplugin][grpc]") {
  TempDir dir;
  UnitTree tree;
  const std::string resource = GENERATE(as<std::string>(), "nvidia.com/GA100_X", "nvidia.com/X");
  const auto kubevirt = *Listener::Start(dir.path() + "/kubevirt-nvidia.com-GA100_X.sock",
                                         {.accepted = [](int fd) { const Fd closed(fd); }});
  PluginLoop loop(dir.path(), tree.tree());
  loop.plugins().Set({TestOffer(resource, {TestUnit("0000:11:00.0")})});
  REQUIRE(loop.RunUntil([&] { return !loop.plugins().Status()[0].socket.empty(); }));
  CHECK(loop.Count(Kind::kContended) == (resource == "nvidia.com/GA100_X" ? 1 : 0));
}

TEST_CASE(
    "R56: a socket of KubeVirt's that nobody listens on is no contention, until somebody does",
    "[deviceplugin][grpc]") {
  PluginNode node;
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  const std::string path = node.dir.path() + "/" + KubeVirtSocketName(kGpu);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  REQUIRE(path.size() < sizeof(address.sun_path));
  std::ranges::copy(path, address.sun_path);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  const auto asks_again = [&] {
    return node.loop.plugins().NextDeadline() < absl::Now() + absl::Seconds(2);
  };
  REQUIRE(node.loop.RunUntil(asks_again));
  SECTION("which is asked once more, and then left alone") {
    REQUIRE(node.loop.RunUntil(
        [&] { return node.loop.plugins().NextDeadline() == absl::InfiniteFuture(); }));
    CHECK(node.loop.Count(Kind::kContended) == 0);
  }
  SECTION("which is seen although no file changes") {
    REQUIRE(::listen(socket.get(), 8) == 0);
    CHECK(node.loop.RunUntil([&] { return node.loop.Count(Kind::kContended) == 1; }));
  }
}

TEST_CASE("R56: doubts about one server are not held against the next", "[deviceplugin][grpc]") {
  PluginNode node;
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  Plugins& plugins = node.loop.plugins();
  CHECK_FALSE(plugins.Compare({}, absl::Now()));
  REQUIRE(std::filesystem::remove(node.Socket()));
  REQUIRE(node.loop.RunUntil([&] { return node.Registrations() == 2; }));
  REQUIRE(node.Serves());
  CHECK_FALSE(plugins.Compare({}, absl::Now()));
  CHECK(node.loop.Count(Kind::kRegisterFailed) == 0);
  // The second doubt about the same one is enough.
  CHECK(plugins.Compare({}, absl::Now()));
  CHECK(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegisterFailed) == 1; }));
}

}  // namespace
}  // namespace vfio_agent
