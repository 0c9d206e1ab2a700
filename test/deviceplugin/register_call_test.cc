// Register against kubelets that do not answer.
#include "deviceplugin/kubelet/register_call.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <future>

#include "catch2/catch.hpp"
#include "deviceplugin/grpc/quiet_grpc.h"
#include "sysfs/fd.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

constexpr std::chrono::seconds kLong(10);

// Listens on kubelet.sock and leaves everybody waiting.
struct SilentKubelet {
  SilentKubelet() {
    quiet.StopTimers();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::ranges::copy(socket, address.sun_path);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(fd.get(), 8) == 0);
  }
  std::unique_ptr<RegisterCall> Call(absl::Duration timeout = kRegisterTimeout) {
    return RegisterCall::Start(
        socket, "nvidia.com/X", "x.sock",
        [this](const absl::Status& status) { done.set_value(status); }, timeout);
  }

  QuietGrpc quiet;  // as in the daemon
  TempDir dir;
  std::string socket = dir.path() + "/kubelet.sock";
  Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::promise<absl::Status> done;
  std::future<absl::Status> result = done.get_future();
};

TEST_CASE("R9: a kubelet that does not answer is given up in time, without gRPC's timers",
          "[deviceplugin][grpc]") {
  SilentKubelet kubelet;
  const auto call = kubelet.Call(absl::Milliseconds(50));
  REQUIRE(kubelet.result.wait_for(kLong) == std::future_status::ready);
  CHECK(absl::IsDeadlineExceeded(kubelet.result.get()));
}

TEST_CASE("a call that is dropped ends at once, and says so", "[deviceplugin][grpc]") {
  SilentKubelet kubelet;
  kubelet.Call().reset();
  REQUIRE(kubelet.result.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  CHECK(absl::IsCancelled(kubelet.result.get()));
}

TEST_CASE("R9: a socket that nobody listens on is an unreachable kubelet", "[deviceplugin][grpc]") {
  SilentKubelet kubelet;
  kubelet.fd = Fd();
  const auto call = kubelet.Call();
  REQUIRE(kubelet.result.wait_for(kLong) == std::future_status::ready);
  CHECK(absl::IsUnavailable(kubelet.result.get()));
}

}  // namespace
}  // namespace vfio_agent
