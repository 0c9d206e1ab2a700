// The lines about what happens with the kubelet.
#include <catch2/catch.hpp>

#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

std::string LineOf(const std::string& text) {
  return ToText(PluginSeen(
      {.kind = PluginEvent::Kind::kRegisterFailed, .resource = "nvidia.com/GH100", .text = text}));
}

TEST_CASE("a kubelet's directory that is missing or closed has its remedy told", "[report]") {
  const std::string error = GENERATE("No such file or directory", "Not a directory",
                                     "Permission denied", "Read-only file system");
  CAPTURE(error);
  CHECK_THAT(LineOf("listen on /var/lib/kubelet/device-plugins/x.sock: " + error),
             Catch::Contains("remedy=\"see that the kubelet's directory is there") &&
                 Catch::Contains("--device-plugin-dir"));
}

TEST_CASE("a kubelet that does not answer is no matter of its directory", "[report]") {
  CHECK_THAT(LineOf("connect to /dp/kubelet.sock: No such file or directory"),
             !Catch::Contains("remedy="));
  CHECK_THAT(LineOf("listen on /dp/x.sock: Too many open files"), !Catch::Contains("remedy="));
}

}  // namespace
}  // namespace vfio_agent
