// The DaemonSet that is shipped: what of the contract only its pod can keep.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

namespace vfio_agent {
namespace {

YAML::Node DaemonSet() {
  for (YAML::Node& document :
       YAML::LoadAllFromFile(std::string(PACKAGING) + "/kustomize/base/daemonset.yaml")) {
    if (document["kind"].as<std::string>() == "DaemonSet") return document["spec"];
  }
  FAIL("no DaemonSet");
  return {};
}

YAML::Node Pod() { return DaemonSet()["template"]["spec"]; }

// The host's path of each volume, by its name; what is no host's path is left out.
std::map<std::string, YAML::Node> HostPaths() {
  std::map<std::string, YAML::Node> paths;
  for (const YAML::Node& volume : Pod()["volumes"]) {
    if (volume["hostPath"]) paths[volume["name"].as<std::string>()] = volume["hostPath"];
  }
  return paths;
}

TEST_CASE("R10: the DaemonSet never has two agents on a node at a time", "[agent]") {
  const YAML::Node strategy = DaemonSet()["updateStrategy"];
  CHECK(strategy["type"].as<std::string>() == "RollingUpdate");
  CHECK(strategy["rollingUpdate"]["maxSurge"].as<int>() == 0);
  CHECK(strategy["rollingUpdate"]["maxUnavailable"].as<int>() == 1);
}

TEST_CASE("R62: the agent's pod is there before those that wait for its devices", "[agent]") {
  CHECK(Pod()["priorityClassName"].as<std::string>() == "system-node-critical");
  // One toleration without key and effect is for every taint: of nodes that are not ready or
  // unreachable as well, and of those that are given to somebody.
  REQUIRE(Pod()["tolerations"].size() == 1);
  const YAML::Node toleration = Pod()["tolerations"][0];
  CHECK(toleration["operator"].as<std::string>() == "Exists");
  CHECK(toleration.size() == 1);
}

TEST_CASE("R17, R62: the pod sees what it needs of the host, and directories rather than sockets",
          "[agent]") {
  const std::map<std::string, YAML::Node> paths = HostPaths();
  std::map<std::string, YAML::Node> mounts;  // by the path, which is the same on both sides
  for (const YAML::Node& mount : Pod()["containers"][0]["volumeMounts"]) {
    const auto path = paths.find(mount["name"].as<std::string>());
    if (path == paths.end()) continue;
    CHECK(path->second["path"].as<std::string>() == mount["mountPath"].as<std::string>());
    mounts[mount["mountPath"].as<std::string>()] = mount;
  }
  const std::vector<std::string> writable = {"/sys", "/dev", "/var/lib/kubelet/device-plugins",
                                             "/var/lib/vfio-agent"};
  for (const std::string& path : writable) {
    CAPTURE(path);
    REQUIRE(mounts.contains(path));
    CHECK_FALSE(mounts.at(path)["readOnly"].as<bool>(false));
  }
  CHECK(mounts.contains("/var/lib/kubelet/pod-resources"));
  for (const auto& [name, path] : paths) {
    CAPTURE(name);
    CHECK_THAT(path["type"].as<std::string>(), Catch::StartsWith("Directory"));
    CHECK_THAT(path["path"].as<std::string>(), !Catch::Contains("kubelet.sock"));
  }
}

TEST_CASE("R62: the agent's pod has no token of the cluster, which it does not need", "[agent]") {
  CHECK_FALSE(Pod()["automountServiceAccountToken"].as<bool>(true));
}

}  // namespace
}  // namespace vfio_agent
