// Checks of the container runtime and the kubelet.
#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/checks.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kInCopy[] = "cannot be seen in a copy";
constexpr char kNotSeen[] =
    "the kubelet's files cannot be seen from here: that needs root, and in a pod hostPID, "
    "CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and a kubelet that runs";
constexpr char kOnHost[] = "run `vfio-agent doctor` on the host, as root";
constexpr char kAsRoot[] = "run it as root";
constexpr char kNoKubelet[] = "not looked for: there is no kubelet";

// "/x: Read-only file system".
std::string ErrorText(const std::string& path, int error) {
  return Message(ErrnoStatus(error, path));
}

std::string Because(const SocketProbe& probe) {
  switch (probe.state) {
    case SocketState::kAbsent:
      return probe.path + " is not there";
    case SocketState::kDead:
      return "nobody listens on " + probe.path;
    case SocketState::kAnswers:
      return probe.path + " answers";
    case SocketState::kPresent:
      return probe.path + " is there";
    case SocketState::kUnclear:
      break;
  }
  return ErrorText(probe.path, probe.error);
}

// True where the kubelet's directory is closed to whoever runs this, so that what is in it, or not,
// cannot be told.
bool ClosedToUs(const KubeletFacts& kubelet) {
  return ErrnoOf(kubelet.plugin_dir) == EACCES && kubelet.socket.state != SocketState::kAnswers;
}

// A failure while the kubelet is down; while it runs only what its next start will meet.
Finding FailUnlessAlive(const DoctorFacts& facts, const std::string& read, std::string remedy) {
  if (KubeletAlive(facts) != Alive::kYes) return Fail(read, std::move(remedy));
  return Warn(read + "; the kubelet runs still, and may not start again", std::move(remedy));
}

Findings Runtime(const DoctorFacts& facts) {
  const KubeletFacts& kubelet = facts.kubelet;
  if (!KubeletExpected(facts)) return {Skipped(kNoKubelet)};
  if (!kubelet.files_seen) return {Unknown(kNotSeen, kOnHost)};
  constexpr char kRemedy[] = "systemctl status containerd (crio); journalctl -u containerd -n 50";
  std::vector<std::string> read;
  bool unclear = facts.view == View::kCopy;
  for (const SocketProbe& probe : kubelet.runtimes) {
    if (probe.state == SocketState::kAnswers) return {Ok(Because(probe))};
    unclear = unclear || probe.state == SocketState::kUnclear;
    read.push_back(Because(probe));
  }
  if (unclear) return {Unknown(read.empty() ? kInCopy : absl::StrJoin(read, ", "))};
  return {Fail(read.empty() ? "there is no socket of containerd or CRI-O below /run"
                            : absl::StrJoin(read, ", "),
               kRemedy)};
}

Findings Configuration(const DoctorFacts& facts) {
  const KubeletFacts& kubelet = facts.kubelet;
  if (!KubeletExpected(facts)) return {Skipped(kNoKubelet)};
  if (!kubelet.files_seen) return {Unknown(kNotSeen, kOnHost)};
  if (kubelet.config_missing) {
    if (facts.view == View::kCopy) return {Unknown(kubelet.config_file + " is not in the copy")};
    return {FailUnlessAlive(
        facts, kubelet.config_file + " is not there: this node has not joined a cluster",
        "kubeadm join (or init) writes it; elsewhere see what writes the file "
        "that the kubelet's --config names")};
  }
  if (!kubelet.config_error.empty()) {
    return {FailUnlessAlive(facts, kubelet.config_error,
                            "mend the file, then systemctl restart kubelet")};
  }
  const KubeletConfig& config = kubelet.config;
  const std::string values = absl::StrFormat(
      "failSwapOn %s, cpuManagerPolicy %s, memoryManagerPolicy %s, topologyManagerPolicy %s",
      config.fail_swap_on ? "true" : "false", config.cpu_policy, config.memory_policy,
      config.topology_policy);
  if (kubelet.config_file.empty()) {
    return {Unknown("no file at the usual places; taken for granted: " + values)};
  }
  return {Ok(kubelet.config_file + ": " + values)};
}

// The kubelet does not start with another policy than the one in its own file.
void JudgeKept(const DoctorFacts& facts, const KeptFile& kept, const std::string& policy,
               Findings& findings) {
  if (!kept.there) return;
  const std::string remedy =
      absl::StrFormat("drain the node, rm %s, systemctl restart kubelet", kept.path);
  if (!kept.error.empty()) {
    findings.push_back(
        FailUnlessAlive(facts, absl::StrFormat("%s: %s", kept.path, kept.error), remedy));
  } else if (!kept.policy.empty() && kept.policy != policy) {
    findings.push_back(
        FailUnlessAlive(facts,
                        absl::StrFormat("%s is of the policy %s, the configuration says %s",
                                        kept.path, kept.policy, policy),
                        remedy));
  }
}

Findings ResourceManagers(const DoctorFacts& facts) {
  constexpr int kMostNodes = 8;
  const KubeletFacts& kubelet = facts.kubelet;
  if (!KubeletExpected(facts)) return {Skipped(kNoKubelet)};
  if (!kubelet.files_seen) return {Unknown(kNotSeen, kOnHost)};
  Findings findings;
  JudgeKept(facts, kubelet.cpu_state, kubelet.config.cpu_policy, findings);
  JudgeKept(facts, kubelet.memory_state, kubelet.config.memory_policy, findings);
  if (kubelet.config.topology_policy != "none" && facts.memory.numa_nodes > kMostNodes &&
      !kubelet.config.many_numa_nodes) {
    findings.push_back(FailUnlessAlive(
        facts,
        absl::StrFormat("topologyManagerPolicy is %s on %d NUMA nodes: the kubelet takes %d",
                        kubelet.config.topology_policy, facts.memory.numa_nodes, kMostNodes),
        "topologyManagerPolicyOptions: {max-allowable-numa-nodes: \"N\"} in the kubelet's "
        "configuration, or topologyManagerPolicy: none"));
  }
  if (findings.empty()) findings.push_back(Ok("their files fit the configuration"));
  return findings;
}

std::string StartRemedy(const KubeletFacts& kubelet) {
  if (kubelet.unit_masked) return "systemctl unmask kubelet, then systemctl enable --now kubelet";
  if (kubelet.unit_installed && !kubelet.unit_enabled) return "systemctl enable --now kubelet";
  return "systemctl status kubelet; journalctl -u kubelet -n 50 says why it does not start";
}

Findings Kubelet(const DoctorFacts& facts) {
  const KubeletFacts& kubelet = facts.kubelet;
  if (!KubeletExpected(facts)) {
    if (facts.view != View::kHost) return {Unknown("nothing here tells of a kubelet")};
    return {Warn("there is no sign of a kubelet: nothing is offered to Kubernetes",
                 "on a machine without Kubernetes that is as it should be")};
  }
  const std::string process =
      kubelet.process
          ? absl::StrFormat("%s is process %d", kubelet.process->command, kubelet.process->pid)
          : "no kubelet process";
  const std::string read = kubelet.asked ? process + ", " + Because(kubelet.socket) : process;
  if (ClosedToUs(kubelet)) return {Unknown(read, kAsRoot)};
  switch (KubeletAlive(facts)) {
    case Alive::kYes:
      return {Ok(read)};
    case Alive::kNo:
      return {Fail(kubelet.unit_masked ? read + "; kubelet.service is masked" : read,
                   StartRemedy(kubelet))};
    case Alive::kUnknown:
      break;
  }
  return {Unknown("no kubelet process is seen; not every process can be seen from here")};
}

Findings PluginDirectory(const DoctorFacts& facts) {
  const KubeletFacts& kubelet = facts.kubelet;
  if (kubelet.plugin_dir.ok()) return {Ok(facts.settings.device_plugin_dir + " is there")};
  if (!kubelet.asked) return {Unknown(kInCopy)};
  if (!KubeletExpected(facts)) return {Skipped(kNoKubelet)};
  const int error = ErrnoOf(kubelet.plugin_dir);
  const std::string read = ErrorText(facts.settings.device_plugin_dir, error);
  if (ClosedToUs(kubelet)) return {Unknown(read, kAsRoot)};
  if (error == EACCES) return {Warn(read, kAsRoot)};
  return {Fail(read,
               "the kubelet makes it when it starts; in a pod, mount it read-write; its place is "
               "kubelet.devicePluginDir")};
}

Findings PodResources(const DoctorFacts& facts) {
  const KubeletFacts& kubelet = facts.kubelet;
  constexpr char kRemedy[] =
      "start the kubelet; in a pod, mount <kubelet.rootDir>/pod-resources; kubelet.rootDir must be "
      "the kubelet's --root-dir. Until then all that is bound counts as held";
  if (kubelet.pods && kubelet.pods->known) {
    return {Ok(absl::StrFormat("answers; pods have %d PCI devices", kubelet.pods->list.size()))};
  }
  if (kubelet.pods) return {Fail(Printable(kubelet.pods->why_unknown, 512), kRemedy)};
  if (!kubelet.asked) return {Unknown(kInCopy)};
  if (!KubeletExpected(facts)) return {Skipped(kNoKubelet)};
  if (kubelet.pods_socket.state == SocketState::kUnclear || ClosedToUs(kubelet)) {
    return {Unknown(Because(kubelet.pods_socket), kAsRoot)};
  }
  return {Fail(Because(kubelet.pods_socket), kRemedy)};
}

Findings Checkpoint(const DoctorFacts& facts) {
  const KeptFile& kept = facts.kubelet.checkpoint;
  if (!kept.there) {
    if (!facts.kubelet.asked) return {Unknown(kInCopy)};
    if (!KubeletExpected(facts)) return {Skipped(kNoKubelet)};
    return {Ok("none: no pod has got a device here yet")};
  }
  if (kept.error.empty()) return {Ok(kept.path + " can be read")};
  if (ClosedToUs(facts.kubelet)) return {Unknown(kept.path + " cannot be read", kAsRoot)};
  return {Warn(absl::StrFormat("%s: %s", kept.path, Printable(kept.error, 256)),
               "the kubelet forgets at its next start which pod has which device: drain the node "
               "before that")};
}

constexpr std::array kChecks = std::to_array<Check>({
    {Layer::kRuntime, "container runtime", Runtime},
    {Layer::kKubelet, "configuration", Configuration},
    {Layer::kKubelet, "resource managers", ResourceManagers},
    {Layer::kKubelet, "kubelet", Kubelet},
    {Layer::kKubelet, "plugin directory", PluginDirectory},
    {Layer::kKubelet, "pod resources", PodResources},
    {Layer::kKubelet, "checkpoint", Checkpoint},
});

}  // namespace

std::span<const Check> KubeletChecks() { return kChecks; }

Alive KubeletAlive(const DoctorFacts& facts) {
  const SocketState socket = facts.kubelet.socket.state;
  if (socket == SocketState::kAnswers) return Alive::kYes;
  if (socket == SocketState::kDead) return Alive::kNo;
  const bool looked = facts.kubelet.asked && facts.kubelet.plugin_dir.ok();
  if (looked && socket == SocketState::kAbsent) return Alive::kNo;
  // Nobody could be asked: what is left is whether it runs.
  if (facts.kubelet.process) return Alive::kYes;
  return facts.processes.complete && !ClosedToUs(facts.kubelet) ? Alive::kNo : Alive::kUnknown;
}

bool KubeletExpected(const DoctorFacts& facts) {
  const KubeletFacts& kubelet = facts.kubelet;
  return kubelet.process || kubelet.unit_installed || kubelet.unit_masked ||
         !kubelet.config_file.empty() || kubelet.plugin_dir.ok() ||
         kubelet.pods_socket.state != SocketState::kAbsent;
}

}  // namespace vfio_agent
