// PodNode: what the tests of pod_resources share.
#pragma once

#include <filesystem>
#include <string>

#include "absl/strings/str_format.h"
#include "catch2/catch.hpp"
#include "deviceplugin/grpc/quiet_grpc.h"
#include "deviceplugin/kubelet/pod_resources.h"
#include "test/deviceplugin/support.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {

inline constexpr char kGpu[] = "nvidia.com/GH100_H100_SXM5_80GB";

// A node with the kubelet's directories and a kubelet that is not started yet.
struct PodNode {
  PodNode() {
    quiet.StopTimers();
    std::filesystem::create_directories(place.device_plugin_dir);
    std::filesystem::create_directories(dir.path() + "/pod-resources");
  }

  // Without what is allocatable, which has a test of its own.
  PodClaims Read(absl::Duration limit = absl::Seconds(20)) {
    PodClaims claims = ReadPodClaims(place, limit);
    claims.allocatable.reset();
    return claims;
  }
  void Start() { REQUIRE(kubelet.Start().ok()); }
  std::string NoAnswer(const std::string& why) const {
    return absl::StrFormat("the kubelet does not answer on %s: %s", socket, why);
  }
  std::string NoConnection(const std::string& why) const {
    return absl::StrFormat("the kubelet does not answer: connect to %s: %s", socket, why);
  }

  QuietGrpc quiet;  // as in the daemon
  TempDir dir;
  const KubeletPlace place{.device_plugin_dir = dir.path() + "/device-plugins",
                           .root_dir = dir.path()};
  const std::string socket = dir.path() + "/pod-resources/kubelet.sock";
  FakeKubelet kubelet{{.dir = place.device_plugin_dir, .root_dir = place.root_dir}};
};

}  // namespace vfio_agent
