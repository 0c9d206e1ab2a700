#include "sysfs/use/cgroup_owner.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const std::string kUid = "1b2c3d4e-0000-4000-8000-0123456789ab";
const std::string kUidOfSystemd = "1b2c3d4e_0000_4000_8000_0123456789ab";
const std::string kContainer = std::string("0123456789ab") + std::string(52, 'c');
const std::string kBoth = "pod " + kUid + ", container 0123456789ab";

TEST_CASE("the pod and container of a process are told by its control group", "[sysfs]") {
  const std::string path = GENERATE_COPY(
      "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kUidOfSystemd +
          ".slice/cri-containerd-" + kContainer + ".scope",
      "0::/kubepods.slice/kubepods-pod" + kUidOfSystemd + ".slice/crio-" + kContainer + ".scope",
      "11:memory:/kubepods/burstable/pod" + kUid + "/" + kContainer,
      "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kUidOfSystemd +
          ".slice/docker-" + kContainer + ".scope",
      "4:cpu:/system.slice/containerd.service/kubepods-burstable-pod" + kUidOfSystemd +
          ".slice:cri-containerd:" + kContainer,
      "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + kUidOfSystemd +
          ".slice/cri-containerd-" + kContainer + ".scope",
      "0::/../../kubepods-pod" + kUidOfSystemd + ".slice/cri-containerd-" + kContainer + ".scope");
  CAPTURE(path);
  CHECK(CgroupOwner(path) == kBoth);
}

TEST_CASE("a static pod is known by its hash", "[sysfs]") {
  const std::string hash(32, 'f');
  CHECK(CgroupOwner("0::/kubepods/burstable/pod" + hash + "/" + kContainer) ==
        "pod " + hash + ", container 0123456789ab");
}

TEST_CASE("a process outside of pods is of a container, a service, or of nobody", "[sysfs]") {
  const auto [path, owner] = GENERATE_COPY(table<std::string, std::string>({
      {"0::/docker/" + kContainer, "container 0123456789ab"},
      {"0::/system.slice/docker-" + kContainer + ".scope", "container 0123456789ab"},
      {"0::/system.slice/nvidia-persistenced.service", "nvidia-persistenced.service"},
      {"0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "machine-qemu\\x2d1\\x2dvm.scope"},
      {"0::/user.slice/user-1000.slice/session-3.scope", "session-3.scope"},
      {"0::/kubepods/pod" + kUid, "pod " + kUid},
      {"0::/", ""},
      {"0::/init.slice/poder", ""},
  }));
  CAPTURE(path);
  CHECK(CgroupOwner(path) == owner);
}

TEST_CASE("of several hierarchies the one that knows most is taken", "[sysfs]") {
  const std::string unit = "9:name=systemd:/system.slice/kubelet.service\n";
  const std::string pod = "8:pids:/kubepods/pod" + kUid + "/" + kContainer + "\n";
  CHECK(CgroupOwner("10:cpu:/\n" + unit + pod + "0::/\n") == kBoth);
  CHECK(CgroupOwner(pod + unit) == kBoth);
  CHECK(CgroupOwner("10:cpu:/\n" + unit + "8:pids:/docker/" + kContainer) ==
        "container 0123456789ab");
}

TEST_CASE("texts that are no control groups belong to nobody", "[sysfs]") {
  const std::string text =
      GENERATE_COPY(as<std::string>{}, "", ":", "::", "0:/kubepods", std::string(100'000, ':'),
                    std::string(100'000, '/'), "0::/kubepods/pod" + std::string(36, '-'),
                    "0::/kubepods/pod" + kUid.substr(1) + "/" + kContainer.substr(1),
                    "0::/pod" + std::string(36, 'x'), std::string("\0\xff\n\0::/", 7));
  CAPTURE(text);
  CHECK(CgroupOwner(text).empty());
}

TEST_CASE("a unit's name cannot break a message", "[sysfs]") {
  CHECK(CgroupOwner("0::/a\x1b[31m\xff.service") == "a?[31m?.service");
  CHECK(CgroupOwner("0::/" + std::string(4000, 'a') + ".service").size() == 128);
}

}  // namespace
}  // namespace vfio_agent
