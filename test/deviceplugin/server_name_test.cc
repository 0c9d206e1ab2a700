#include <sys/un.h>

#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/register_call.h"
#include "deviceplugin/kubelet/server.h"

namespace vfio_agent {
namespace {

TEST_CASE("R6: a socket's name is short whatever the resource's", "[deviceplugin]") {
  const std::string name = SocketName("nvidia.com/" + std::string(63, 'X'), 0xffffffff, 2147483647);
  CHECK(name.size() <= 40);
  const auto path = SocketPath("/var/lib/kubelet/device-plugins", name);
  REQUIRE(path.ok());
  CHECK(*path == "/var/lib/kubelet/device-plugins/" + name);
}

TEST_CASE("R7, T6: no two resources, processes or servers share a socket's name",
          "[deviceplugin]") {
  const std::string name = SocketName("nvidia.com/A", 1, 1);
  CHECK(name.starts_with("vfio-"));
  CHECK(name.ends_with("-00000001-1.sock"));
  CHECK(SocketName("nvidia.com/B", 1, 1) != name);
  CHECK(SocketName("nvidia.com/A", 2, 1) != name);
  CHECK(SocketName("nvidia.com/A", 1, 2) != name);
}

TEST_CASE("R6: a path that a socket cannot have is an error that says why", "[deviceplugin]") {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  const std::string name(7, 'n');
  CHECK(SocketPath("/" + std::string(kMost - 9, 'd'), name).ok());
  const auto path = SocketPath("/" + std::string(kMost - 8, 'd'), name);
  CHECK(absl::IsInvalidArgument(path.status()));
  CHECK_THAT(std::string(path.status().message()),
             Catch::Contains("at most 107 bytes, this has 108"));
}

TEST_CASE("R9: the kubelet's final answers are told from those that may change", "[deviceplugin]") {
  CHECK(IsPermanent(absl::UnknownError("the ResourceName \"x\" is invalid")));
  CHECK(IsPermanent(absl::UnknownError(
      "requested API version \"v2\" is not supported by kubelet. Supported version is [v1beta1]")));
  CHECK_FALSE(IsPermanent(absl::UnknownError("failed to dial device plugin: deadline exceeded")));
  CHECK_FALSE(IsPermanent(absl::UnavailableError("connection refused")));
}

}  // namespace
}  // namespace vfio_agent
