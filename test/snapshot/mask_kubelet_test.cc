// What a snapshot keeps of the kubelet's files.
#include "test/snapshot/masked.h"

namespace vfio_agent {
namespace {

TEST_CASE("of the kubelet only what bears on devices and swap is kept", "[snapshot]") {
  using std::string_literals::operator""s;
  CHECK(Masked("proc/77/cmdline",
               "/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0--node-ip=10.1.2.3\0"
               "--fail-swap-on\0false\0--kubeconfig\0/etc/secret\0"s) ==
        "kubelet\0--config=/var/lib/kubelet/config.yaml\0--fail-swap-on=false\0"s);
  CHECK(Masked("proc/78/cmdline", "python3\0--config=/home/ada/x\0"s).empty());
  CHECK(Masked("var/lib/kubelet/kubeadm-flags.env",
               "KUBELET_KUBEADM_ARGS=\"--root-dir=/data/kubelet --node-ip=10.1.2.3\"\n") ==
        "--root-dir=/data/kubelet\n");
  CHECK(Masked("usr/lib/systemd/system/kubelet.service",
               "[Service]\nEnvironment=TOKEN=s3cret\nExecStart=/usr/bin/kubelet "
               "--fail-swap-on=false\n") == "--fail-swap-on=false\n");
  CHECK(
      Masked(
          "var/lib/kubelet/config.yaml",
          "kind: KubeletConfiguration\nclusterDNS:\n- 10.96.0.10\nfailSwapOn: false\nmemorySwap:\n"
          "  swapBehavior: NoSwap\nstaticPodPath: /etc/x\ncpuManagerPolicy: static\n") ==
      "kind: KubeletConfiguration\nfailSwapOn: false\nmemorySwap:\n  swapBehavior: NoSwap\n"
      "cpuManagerPolicy: static\n");
  CHECK(Masked("etc/kubernetes/kubelet/config.json",
               R"({"kind": "K", "clusterDNS": ["10.96.0.10"], "failSwapOn": false})") ==
        "{\n \"kind\": \"K\",\n \"failSwapOn\": false\n}\n");
  CHECK(Masked("var/lib/kubelet/cpu_manager_state",
               R"({"policyName":"static","entries":{"5ec0":{"app":"1-2"}}})") ==
        "{\n \"policyName\": \"static\"\n}\n");
  CHECK(Masked("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
               R"({"Data":{"PodDeviceEntries":[{"PodUID":"5ec0"}]}})") == "{}\n");
  // What is broken stays broken.
  CHECK(Masked("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{\"Da") == "{\n");
}

TEST_CASE("the kubelet's own places have other names, in its flags, its keys and as files",
          "[snapshot]") {
  using std::string_literals::operator""s;
  const std::string config = "/etc/acme/kubernetes/acme.yaml";
  const std::string masked = "/etc/masked-0001/kubernetes/masked-0001.yaml";
  CHECK(Masked("proc/77/cmdline", "kubelet\0--config="s + config + "\0--root-dir\0/data/acme\0"s) ==
        "kubelet\0--config="s + masked + "\0--root-dir=/data/masked-0001\0"s);
  CHECK(Masked("etc/default/kubelet", "A=\"--config-dir=/etc/acme.d\"\n") ==
        "--config-dir=/etc/masked-0001\n");
  CHECK(Masked("var/lib/kubelet/config.yaml",
               "containerRuntimeEndpoint: \"unix:///run/acme/containerd.sock\" # by ada\n"
               "failSwapOn: false # by ada\n") ==
        "containerRuntimeEndpoint: unix:///run/masked-0001/containerd.sock\nfailSwapOn: false\n");
  CHECK_THAT(Masked("etc/kubernetes/kubelet/config.json",
                    R"({"containerRuntimeEndpoint": "unix:///run/acme/x.sock"})"),
             Catch::Contains("unix:///run/masked-0001/masked-0002.sock"));
  Masker masker;
  CHECK("/" + MaskPlace(config.substr(1), masker) == masked);
}

TEST_CASE("files outside of the kernel's keep the names that every node has", "[snapshot]") {
  Masker masker;
  for (const char* path :
       {"var/lib/kubelet/config.yaml", "var/lib/kubelet/device-plugins/kubelet.sock",
        "etc/kubernetes/kubelet/kubelet-config.json", "home/kubernetes/kubelet-config.yaml",
        "etc/systemd/system/multi-user.target.wants/kubelet.service",
        "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "etc/default/kubelet",
        "etc/vfio-agent/config.yaml", "usr/share/misc/pci.ids", "etc/modprobe.d/blacklist.conf",
        "var/lib/vfio-agent/devices/0000:01:00.0.json", "usr/lib/modules/6.1.0-acme/modules.dep",
        "run/k3s/containerd/containerd.sock", "var/lib/kubelet/cpu_manager_state"}) {
    CHECK(MaskPlace(path, masker) == path);
  }
  // Of others the order in which they are read, and by which ending they are found.
  CHECK(MaskPlace("etc/systemd/system/kubelet.service.d/20-acme.conf", masker) ==
        "etc/systemd/system/kubelet.service.d/20-masked-0001.conf");
  CHECK(MaskPlace("var/lib/kubelet/device-plugins/acme.sock", masker) ==
        "var/lib/kubelet/device-plugins/masked-0001.sock");
}

}  // namespace
}  // namespace vfio_agent
