// The cases of the host and of the kubelet.
#include "sysfs/status.h"
#include "test/doctor/check_cases.h"

namespace vfio_agent {

Fact<std::vector<SwapArea>> SwapOn() {
  return Fact<std::vector<SwapArea>>({{.name = "/swapfile", .type = "file", .size_kb = 8 << 20}});
}

void StopKubelet(Facts& facts) {
  facts.kubelet.process.reset();
  facts.kubelet.socket.state = SocketState::kDead;
  facts.kubelet.pods_socket.state = SocketState::kDead;
  facts.kubelet.pods.reset();
}

void NoKubeletAtAll(Facts& facts) {
  facts.kubelet = KubeletFacts();
  facts.kubelet.plugin_dir = absl::NotFoundError("open var/lib/kubelet/device-plugins");
}

const std::vector<Case>& HostCases() {
  static const std::vector<Case> cases = {
      {"huge pages", State::kWarn, "NUMA node 1 has selected devices and none",
       [](Facts& f) {
         f.memory.huge_pages = {{.node = 0, .size_kb = 1 << 20, .reserved = 8, .free = 8},
                                {.node = 1, .size_kb = 1 << 20}};
         f.picture->plan.resources.at(0).units.at(0).numa_node = 1;
       }},
      {"huge pages", State::kWarn, "asks for 24, there are 8",
       [](Facts& f) {
         f.command_line = "intel_iommu=on hugepagesz=1G hugepages=0:16,1:8";
         f.memory.huge_pages = {{.node = 0, .size_kb = 1 << 20, .reserved = 8}};
       }},
      {"NUMA balancing", State::kWarn, "on, 2 NUMA nodes",
       [](Facts& f) { f.memory.numa_balancing = Fact<bool>(true); }},
      {"locked memory", State::kWarn, "containerd (pid 700): 8 MiB",
       [](Facts& f) {
         f.processes.list = {
             {.pid = 700, .command = "containerd", .locked_memory_bytes = Fact<uint64_t>(8 << 20)}};
       }},
      {"swap", State::kFail, "/swapfile (file, 8 GiB); the kubelet's configuration refuses it",
       [](Facts& f) {
         f.memory.swaps = SwapOn();
         StopKubelet(f);
       }},
      {"swap", State::kWarn, "runs still, and does not start again",
       [](Facts& f) { f.memory.swaps = SwapOn(); }},
      {"swap", State::kWarn, "cannot be seen from here",
       [](Facts& f) {
         f.memory.swaps = SwapOn();
         StopKubelet(f);
         f.kubelet.files_seen = false;
       }},
      {"swap", State::kWarn, "no configuration of it was seen",
       [](Facts& f) {
         f.memory.swaps = SwapOn();
         StopKubelet(f);
         f.kubelet.config_file.clear();
       }},
      {"swap", State::kWarn, "cannot be read or understood",
       [](Facts& f) {
         f.memory.swaps = SwapOn();
         StopKubelet(f);
         f.kubelet.config_error = "config.yaml:3:1: bad";
       }},
      {"swap", State::kUnknown, "cannot be read",
       [](Facts& f) { f.memory.swaps = Fact<std::vector<SwapArea>>::Unknown(EACCES); }},
      {"swap", State::kUnknown, "cannot be read",
       [](Facts& f) {
         f.memory.swaps = {};
         f.view = View::kCopy;
       }},
      {"state directory", State::kFail, "512 KiB free",
       [](Facts& f) { f.state_dir->free_bytes = 512 << 10; }},
      {"state directory", State::kFail, "room for 3 more files",
       [](Facts& f) { f.state_dir->free_files = 3; }},
      {"state directory", State::kFail, "read-only",
       [](Facts& f) { f.state_dir->read_only = true; }},
      {"state directory", State::kWarn, "8 MiB free",
       [](Facts& f) { f.state_dir->free_bytes = 8 << 20; }},
      {"state directory", State::kFail, "look at",
       [](Facts& f) { f.state_dir->status = absl::PermissionDeniedError("look at /var"); }},
      {"state directory", State::kUnknown, "in a copy", [](Facts& f) { f.state_dir.reset(); }},
  };
  return cases;
}

const std::vector<Case>& KubeletCases() {
  static const std::vector<Case> cases = {
      {"container runtime", State::kFail, "nobody listens on /run/containerd/containerd.sock",
       [](Facts& f) { f.kubelet.runtimes.at(0).state = SocketState::kDead; }},
      {"container runtime", State::kFail, "no socket of containerd",
       [](Facts& f) { f.kubelet.runtimes.clear(); }},
      {"container runtime", State::kUnknown, "cannot be seen from here",
       [](Facts& f) { f.kubelet.files_seen = false; }},
      {"configuration", State::kWarn, "config.yaml:3:1: bad; the kubelet runs still",
       [](Facts& f) { f.kubelet.config_error = "config.yaml:3:1: bad"; }},
      {"configuration", State::kFail, "config.yaml:3:1: bad",
       [](Facts& f) {
         f.kubelet.config_error = "config.yaml:3:1: bad";
         StopKubelet(f);
       }},
      {"resource managers", State::kFail, "is of the policy static, the configuration says none",
       [](Facts& f) {
         f.kubelet.cpu_state.policy = "static";
         StopKubelet(f);
       }},
      {"resource managers", State::kWarn, "memory_manager_state: no JSON",
       [](Facts& f) { f.kubelet.memory_state.error = "no JSON"; }},
      {"resource managers", State::kFail, "restricted on 16 NUMA nodes",
       [](Facts& f) {
         f.kubelet.config.topology_policy = "restricted";
         f.memory.numa_nodes = 16;
         StopKubelet(f);
       }},
      {"kubelet", State::kFail, "no kubelet process, nobody listens on", StopKubelet},
      {"kubelet", State::kFail, "is masked",
       [](Facts& f) {
         StopKubelet(f);
         f.kubelet.unit_masked = true;
       }},
      {"kubelet", State::kWarn, "no sign of a kubelet", NoKubeletAtAll},
      {"plugin directory", State::kFail, "/var/lib/kubelet/device-plugins: Read-only file system",
       [](Facts& f) { f.kubelet.plugin_dir = ErrnoStatus(EROFS, "write"); }},
      {"plugin directory", State::kWarn, "Permission denied",
       [](Facts& f) { f.kubelet.plugin_dir = ErrnoStatus(EACCES, "write"); }},
      {"pod resources", State::kFail, "nothing within 2s",
       [](Facts& f) {
         f.kubelet.pods = PodClaims{.known = false, .why_unknown = "nothing within 2s"};
       }},
      {"pod resources", State::kFail, "pod-resources/kubelet.sock is not there",
       [](Facts& f) {
         f.kubelet.pods.reset();
         f.kubelet.pods_socket.state = SocketState::kAbsent;
       }},
      {"pod resources", State::kUnknown, "Permission denied",
       [](Facts& f) {
         f.kubelet.pods.reset();
         f.kubelet.pods_socket = {"/pods.sock", SocketState::kUnclear, EACCES};
       }},
      {"checkpoint", State::kWarn, "no JSON",
       [](Facts& f) { f.kubelet.checkpoint.error = "it is no JSON object"; }},
      {"daemon", State::kWarn, "no agent answers",
       [](Facts& f) { f.agent = absl::NotFoundError("no agent answers"); }},
      {"daemon", State::kUnknown, "needs root",
       [](Facts& f) { f.agent = absl::PermissionDeniedError("needs root"); }},
      {"daemon", State::kFail, "nothing within",
       [](Facts& f) { f.agent = absl::DeadlineExceededError("nothing within 3s"); }},
      {"daemon", State::kFail, "cannot read the node",
       [](Facts& f) { (*f.agent)->picture.error = "no PCI"; }},
      {"daemon", State::kWarn, "not ready", [](Facts& f) { (*f.agent)->ready = false; }},
      {"writes", State::kFail, "echo 0000:65:00.0 > unbind (in nvidia_remove)",
       [](Facts& f) {
         (*f.agent)->jobs.push_back({.group = 26,
                                     .state = "stuck",
                                     .command = "echo 0000:65:00.0 > unbind",
                                     .where = "nvidia_remove"});
       }},
      {"registration", State::kFail, "nvidia.com/GPU is not registered: refused",
       [](Facts& f) {
         (*f.agent)->plugins.at(0).registered = false;
         (*f.agent)->plugins.at(0).last_error = "refused";
       }},
      {"registration", State::kFail, "nvidia.com/GPU: cannot publish ResourceSlices",
       [](Facts& f) { (*f.agent)->plugins.at(0).last_error = "cannot publish ResourceSlices"; }},
      {"other managers", State::kFail, "KubeVirt's own plugin serves",
       [](Facts& f) {
         std::string name = f.picture->plan.resources.at(0).name;
         std::ranges::replace(name, '/', '-');
         f.kubelet.other_plugins = {"kubevirt-" + name + ".sock"};
       }},
      {"API server", State::kWarn, "no answer from https://10.96.0.1:443 as node gpu-7: refused",
       [](Facts& f) {
         (*f.agent)->api = {
             .server = "https://10.96.0.1:443", .node = "gpu-7", .last_error = "refused"};
       }},
      {"API server", State::kWarn, "not everything is written",
       [](Facts& f) {
         (*f.agent)->api = {.server = "https://10.96.0.1:443", .node = "gpu-7", .connected = true};
       }},
      {"API server", State::kWarn, "as node gpu-7: there is no Node of this name",
       [](Facts& f) {
         (*f.agent)->api = {.server = "https://10.96.0.1:443",
                            .node = "gpu-7",
                            .connected = true,
                            .last_error = "there is no Node of this name"};
       }},
      {"mode", State::kWarn, "vm-passthrough (blocked): group 3",
       [](Facts& f) {
         (*f.agent)->mode.state = "blocked";
         (*f.agent)->mode.reason = "group 3";
       }},
      {"other managers", State::kWarn, "nvidia-kubevirt (pid 6)",
       [](Facts& f) { f.processes.list.push_back({.pid = 6, .command = "nvidia-kubevirt"}); }},
      {"other managers", State::kWarn,
       "NVIDIA's vfio-manager runs here (pod ops/nvidia-vfio-manager-x7k2p) and takes every card",
       [](Facts& f) {
         f.picture->custody.tenancy.emplace();
         f.picture->custody.tenancy->claims.rivals = {"ops/nvidia-vfio-manager-x7k2p"};
       }},
      {"KubeVirt", State::kFail, "nobody listens on /dp/kubevirt-kvm.sock",
       [](Facts& f) {
         f.processes.list.clear();
         f.kubelet.kubevirt_sockets = {{"/dp/kubevirt-kvm.sock", SocketState::kDead}};
       }},
      {"KubeVirt", State::kWarn, "no sign of KubeVirt", [](Facts& f) { f.processes.list.clear(); }},
  };
  return cases;
}

}  // namespace vfio_agent
