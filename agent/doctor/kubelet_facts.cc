#include "agent/doctor/kubelet_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "agent/doctor/kubelet_saved.h"
#include "agent/text/json.h"
#include "deviceplugin/kubelet/pod_resources.h"
#include "deviceplugin/kubelet/stale_sockets.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr size_t kKeptLimit = size_t{16} * 1024 * 1024;

constexpr std::array kRuntimeSockets =
    std::to_array<std::string_view>({"run/containerd/containerd.sock", "run/crio/crio.sock",
                                     "run/k3s/containerd/containerd.sock", "run/cri-dockerd.sock"});

// "/var/lib/kubelet" as a path below a root.
std::string Below(std::string_view path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return std::string(path);
}

// OK where a socket could be made there; a file system that is read-only says so to root as well.
absl::Status LookAtDirectory(const Tree& tree, const std::string& path, bool live) {
  ASSIGN_OR_RETURN(const Fd dir, tree.OpenAt(path, O_RDONLY | O_DIRECTORY));
  if (live && ::faccessat(dir.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return ErrnoStatus(absl::StrFormat("write to /%s", path));
  }
  return absl::OkStatus();
}

std::vector<SocketProbe> ProbeRuntimes(const KubeletSources& sources, const KubeletConfig& config) {
  constexpr std::string_view kUnix = "unix://";
  std::vector<SocketProbe> probes;
  std::string_view endpoint = config.runtime_endpoint;
  if (endpoint.starts_with(kUnix)) endpoint.remove_prefix(kUnix.size());
  if (endpoint.starts_with('/')) {
    return {ProbeSocket(*sources.files, Below(endpoint), sources.files_live)};
  }
  for (const std::string_view path : kRuntimeSockets) {
    SocketProbe probe = ProbeSocket(*sources.files, path, sources.files_live);
    if (probe.state != SocketState::kAbsent) probes.push_back(std::move(probe));
  }
  return probes;
}

// `policy_key`: of a resource manager's state; empty for a file that is only to be JSON.
KeptFile ReadKept(const Tree& tree, const std::string& path, const char* policy_key) {
  KeptFile kept{.path = "/" + path};
  const absl::StatusOr<std::string> text = ReadProcText(tree, path, kKeptLimit);
  kept.there = !absl::IsNotFound(text.status());
  if (!text.ok()) {
    if (kept.there) kept.error = Message(text.status());
    return kept;
  }
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) {
    kept.error = "it is no JSON object";
  } else if (const auto policy = json.find(policy_key);
             policy != json.end() && policy->is_string()) {
    kept.policy = Printable(policy->get<std::string>(), 64);
  }
  return kept;
}

std::vector<SocketProbe> ProbeKubeVirt(const Tree& tree, const std::string& dir, bool ask) {
  std::vector<SocketProbe> probes;
  const absl::StatusOr<std::vector<std::string>> names = tree.List(dir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (!name.starts_with("kubevirt-") || !name.ends_with(".sock")) continue;
    probes.push_back(ProbeSocket(tree, absl::StrFormat("%s/%s", dir, name), ask));
    probes.back().path = Printable(probes.back().path);
  }
  return probes;
}

void ReadPlugins(const KubeletSources& sources, const Settings& settings, KubeletFacts& facts) {
  const Tree& tree = *sources.plugins;
  const bool live = sources.plugins_live;
  const std::string dir = Below(settings.device_plugin_dir);
  facts.asked = live;
  facts.plugin_dir = LookAtDirectory(tree, dir, live);
  facts.socket = ProbeSocket(tree, dir + "/kubelet.sock", live);
  const std::string pods = Below(settings.kubelet_root_dir) + "/pod-resources/kubelet.sock";
  facts.pods_socket = ProbeSocket(tree, pods, live);
  facts.checkpoint = ReadKept(tree, dir + "/kubelet_internal_checkpoint", "");
  facts.kubevirt_sockets = ProbeKubeVirt(tree, dir, live);
  if (!live) return;
  for (const std::string& name : OtherPlugins(settings.device_plugin_dir)) {
    facts.other_plugins.push_back(Printable(name));
  }
  if (facts.pods_socket.state == SocketState::kAnswers) {
    facts.pods = ReadPodClaims(
        {.device_plugin_dir = settings.device_plugin_dir, .root_dir = settings.kubelet_root_dir},
        kPatience);
  }
}

}  // namespace

const HostProcess* FindKubelet(const HostProcesses& processes) {
  constexpr std::array<std::string_view, 5> kNames = {"kubelet", "kubelite", "k3s-server",
                                                      "k3s-agent", "hyperkube"};
  const auto found = std::ranges::find_if(processes.list, [&](const HostProcess& process) {
    return std::ranges::count(kNames, process.command) != 0;
  });
  return found == processes.list.end() ? nullptr : &*found;
}

namespace {

bool IsRancher(std::string_view command) {
  return command == "k3s" || command == "rke2" || command == "k3s-server" || command == "k3s-agent";
}

// A kubelet within another program has no flags of its own, and none that is down has any.
KubeletFlags FlagsOf(const KubeletSources& sources, const HostProcess* process) {
  KubeletFlags flags;
  const bool rancher = process != nullptr && IsRancher(process->command);
  if (process != nullptr) {
    const std::vector<std::string> words = ReadArguments(*sources.proc, process->pid);
    flags = rancher ? ParseKubeletArgs(words) : ParseKubeletFlags(words);
  }
  if (sources.files == nullptr || (!flags.empty() && !rancher)) return flags;
  if (!rancher) flags = ReadSavedFlags(*sources.files);
  flags.merge(ReadRancherFlags(*sources.files));
  return flags;
}

}  // namespace

KubeletFacts ReadKubeletFacts(const KubeletSources& sources, const HostProcesses& processes,
                              const Settings& settings) {
  KubeletFacts facts;
  const HostProcess* const process = FindKubelet(processes);
  if (process != nullptr) facts.process = *process;
  const KubeletFlags flags = FlagsOf(sources, process);
  facts.allows_swap = std::ranges::any_of(processes.list, IsRancher, &HostProcess::command);
  facts.files_seen = sources.files != nullptr;
  if (sources.files != nullptr) {
    ReadUnit(*sources.files, facts);
    if (process == nullptr && !facts.unit_installed && HasRancherUnit(*sources.files)) {
      facts.allows_swap = true;
    }
    ReadConfigFiles(*sources.files, flags, facts);
    ApplyKubeletFlags(flags, facts.config);
    facts.runtimes = ProbeRuntimes(sources, facts.config);
    const auto root = flags.find("root-dir");
    const std::string dir =
        Below(root == flags.end() ? settings.kubelet_root_dir : root->second) + "/";
    facts.cpu_state = ReadKept(*sources.files, dir + "cpu_manager_state", "policyName");
    facts.memory_state = ReadKept(*sources.files, dir + "memory_manager_state", "policyName");
  }
  ReadPlugins(sources, settings, facts);
  return facts;
}

}  // namespace vfio_agent
