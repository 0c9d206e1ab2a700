#include "test/privileges/pod_spec.h"

#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <cstdlib>

namespace vfio_agent {
namespace {

[[noreturn]] void GiveUp(const std::string& file, const char* why) {
  std::fprintf(stderr, "%s: %s\n", file.c_str(), why);
  std::exit(125);
}

PodMount MountOf(const YAML::Node& mount, const YAML::Node& volumes) {
  PodMount result{.path = mount["mountPath"].as<std::string>(),
                  .read_only = mount["readOnly"].as<bool>(false)};
  for (const YAML::Node& volume : volumes) {
    if (!volume["name"] || volume["name"].as<std::string>() != mount["name"].as<std::string>()) {
      continue;
    }
    const YAML::Node& path = volume["hostPath"];
    if (!path) continue;
    result.host = path["path"].as<std::string>();
    result.create = path["type"].as<std::string>("") == "DirectoryOrCreate";
  }
  return result;
}

}  // namespace

PodSpec ReadPodSpec(const std::string& file) {
  for (const YAML::Node& document : YAML::LoadAllFromFile(file)) {
    if (document["kind"].as<std::string>("") != "DaemonSet") continue;
    const YAML::Node pod = document["spec"]["template"]["spec"];
    const YAML::Node container = pod["containers"][0];
    const YAML::Node security = container["securityContext"];
    if (security["privileged"].as<bool>(false)) GiveUp(file, "the container is privileged");
    if (security["capabilities"]["drop"][0].as<std::string>("") != "ALL") {
      GiveUp(file, "capabilities are not dropped: what is left depends on the runtime");
    }
    PodSpec spec{.host_pid = pod["hostPID"].as<bool>(false),
                 .host_network = pod["hostNetwork"].as<bool>(false),
                 .read_only_root = security["readOnlyRootFilesystem"].as<bool>(false),
                 .no_new_privileges = !security["allowPrivilegeEscalation"].as<bool>(true),
                 .runtime_seccomp =
                     security["seccompProfile"]["type"].as<std::string>("") == "RuntimeDefault"};
    for (const YAML::Node& name : security["capabilities"]["add"]) {
      spec.capabilities.insert(name.as<std::string>());
    }
    for (const YAML::Node& mount : container["volumeMounts"]) {
      if (mount["mountPath"]) spec.mounts.push_back(MountOf(mount, pod["volumes"]));
    }
    return spec;
  }
  GiveUp(file, "no DaemonSet");
}

}  // namespace vfio_agent
