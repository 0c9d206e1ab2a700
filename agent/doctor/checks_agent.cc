// Checks of this program's daemon, of what else serves devices, and of KubeVirt.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/checks.h"
#include "deviceplugin/kubelet/stale_sockets.h"
#include "iommu/plan/job_key.h"
#include "iommu/tenancy/rival.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kNotAsked[] = "cannot be asked in a copy";
constexpr char kNotRunning[] = "not asked: the daemon does not run";
constexpr char kNoAnswer[] = "not asked: the daemon does not answer";

Findings Daemon(const DoctorFacts& facts) {
  if (!facts.agent || absl::IsPermissionDenied(facts.agent->status())) return {NoStatus(facts)};
  if (absl::IsNotFound(facts.agent->status())) {
    return {Warn(Printable(Message(facts.agent->status()), 256),
                 "systemctl start vfio-agent, or see the pod of the DaemonSet on this node")};
  }
  const AgentStatus* const status = StatusOf(facts);
  if (status == nullptr) {
    return {Fail(Printable(Message(facts.agent->status()), 256),
                 "its log says what it does: journalctl -u vfio-agent, or kubectl logs")};
  }
  const std::string who =
      absl::StrFormat("%s, process %d", Printable(status->version), status->pid);
  if (!status->picture.error.empty()) {
    return {Fail(absl::StrFormat("%s: it cannot read the node: %s", who,
                                 Printable(status->picture.error, 256)),
                 "see read_failed in its log")};
  }
  if (!status->ready) {
    return {Warn(who + ", not ready", "vfio-agent status tells what it waits for")};
  }
  if (!status->config_rejected.empty()) {
    return {Warn(absl::StrFormat("%s, ready; its configuration was not taken, the one before is in "
                                 "force: %s",
                                 who, Printable(status->config_rejected, 256)),
                 "mend the file (vfio-agent config check); the daemon takes it by itself")};
  }
  return {Ok(who + ", ready")};
}

Findings Writes(const DoctorFacts& facts) {
  const AgentStatus* const status = StatusOf(facts);
  if (status == nullptr) return {NoStatus(facts)};
  Findings findings;
  for (const JobStatus& job : status->jobs) {
    if (job.state != "stuck") continue;
    findings.push_back(
        Fail(absl::StrFormat("%s: this has not returned: %s%s", SpellJobKey(job.group),
                             Printable(job.command, 256),
                             job.where.empty() ? "" : " (in " + Printable(job.where) + ")"),
             std::string(DefaultRemedy(Code::kUnbindStuck)), Code::kUnbindStuck));
  }
  if (findings.empty()) {
    findings.push_back(Ok(absl::StrFormat("%d under way, none is late", status->jobs.size())));
  }
  return findings;
}

Findings Registration(const DoctorFacts& facts) {
  const AgentStatus* const status = StatusOf(facts);
  if (status == nullptr) return {NoStatus(facts)};
  std::vector<std::string> registered;
  Findings findings;
  for (const PluginStatus& plugin : status->plugins) {
    // Of what is served by claims the slices can fail all the same.
    const bool well = plugin.registered && plugin.last_error.empty();
    if (well || plugin.units == 0) {
      registered.push_back(Printable(plugin.resource, 256));
      continue;
    }
    findings.push_back(Fail(
        absl::StrFormat("%s%s%s", Printable(plugin.resource, 256),
                        plugin.registered ? "" : " is not registered",
                        plugin.last_error.empty() ? "" : ": " + Printable(plugin.last_error, 512)),
        "it registers as soon as the kubelet answers: see the checks of the kubelet; with `serve: "
        "dra` also the token and the rights that it needs: packaging/kustomize/overlays/dra "
        "(components/dra/rbac.yaml), or api.enabled and dra.enabled in the chart"));
  }
  if (!registered.empty() || findings.empty()) {
    findings.insert(findings.begin(), Ok(registered.empty() ? "nothing to register"
                                                            : absl::StrJoin(registered, ", ")));
  }
  return findings;
}

constexpr std::array kRivals =
    std::to_array<std::string_view>({"nvidia-device-p", "nvidia-kubevirt"});

// By the kubelet's list of pods, of which the plan takes account as well.
Findings OtherManagersPods(const DoctorFacts& facts) {
  Findings findings;
  if (!facts.picture || !facts.picture->custody.tenancy) return findings;
  for (const std::string& pod : facts.picture->custody.tenancy->claims.rivals) {
    const RivalKind* const kind = FindRivalKind(pod.substr(pod.find('/') + 1));
    if (kind == nullptr) continue;
    findings.push_back(
        Warn(absl::StrFormat("%s runs here (pod %s) and %s", kind->what, pod, kind->does),
             std::string(kind->remedy), Code::kForeignManager));
  }
  return findings;
}

Findings OtherManagers(const DoctorFacts& facts) {
  const std::vector<std::string>& others = facts.kubelet.other_plugins;
  Findings findings = OtherManagersPods(facts);
  for (const Resource& resource :
       facts.picture ? facts.picture->plan.resources : std::vector<Resource>()) {
    const std::string socket = KubeVirtSocketName(resource.name);
    if (std::ranges::count(others, socket) == 0) continue;
    findings.push_back(
        Fail(absl::StrFormat("KubeVirt's own plugin serves %s too, on %s", resource.name, socket),
             "externalResourceProvider: true in permittedHostDevices of the KubeVirt resource",
             Code::kForeignManager));
  }
  if (const std::string rivals = SpellProcesses(facts, kRivals); !rivals.empty()) {
    findings.push_back(
        Warn("a plugin of NVIDIA's runs: " + rivals,
             "label the node nvidia.com/gpu.deploy.sandbox-device-plugin=false and "
             "nvidia.com/gpu.deploy.device-plugin=false, unless it serves other cards than these",
             Code::kForeignManager));
  }
  if (findings.empty()) {
    findings.push_back(Ok(others.empty() ? "no other plugin answers in the plugin directory"
                                         : "beside this: " + absl::StrJoin(others, ", ")));
  }
  return findings;
}

// virt-handler serves KubeVirt's own plugins (kubevirt-kvm.sock and others), and starts machines.
Findings KubeVirt(const DoctorFacts& facts) {
  constexpr std::array<std::string_view, 1> kHandler = {"virt-handler"};
  if (const std::string handler = SpellProcesses(facts, kHandler); !handler.empty()) {
    return {Ok(handler)};
  }
  std::vector<std::string> dead;
  for (const SocketProbe& probe : facts.kubelet.kubevirt_sockets) {
    if (probe.state == SocketState::kAnswers) return {Ok(probe.path + " answers")};
    dead.push_back(probe.path);
  }
  constexpr char kRemedy[] = "kubectl -n kubevirt get pods -o wide: the virt-handler of this node";
  if (dead.empty()) {
    if (!KubeletExpected(facts)) return {Skipped("not looked for: there is no kubelet")};
    if (!facts.kubelet.asked) return {Unknown("nothing here tells of KubeVirt")};
    return {
        Warn("there is no sign of KubeVirt: no virt-handler, no socket of its plugins", kRemedy)};
  }
  const std::string read = absl::StrJoin(dead, ", ");
  if (!facts.kubelet.asked) return {Unknown(read + " is there; who listens cannot be seen")};
  return {Fail("nobody listens on " + read + ": virt-handler does not run", kRemedy)};
}

constexpr std::array kChecks = std::to_array<Check>({
    {Layer::kAgent, "daemon", Daemon},
    {Layer::kAgent, "writes", Writes},
    {Layer::kAgent, "registration", Registration},
    {Layer::kAgent, "other managers", OtherManagers},
    {Layer::kAgent, "API server", LookAtApiServer},
    {Layer::kAgent, "mode", LookAtMode},
    {Layer::kKubevirt, "KubeVirt", KubeVirt},
});

}  // namespace

const AgentStatus* StatusOf(const DoctorFacts& facts) {
  return facts.agent && facts.agent->ok() ? &**facts.agent : nullptr;
}

Finding NoStatus(const DoctorFacts& facts) {
  if (!facts.agent) return Unknown(kNotAsked);
  if (absl::IsPermissionDenied(facts.agent->status())) {
    return Unknown(Printable(Message(facts.agent->status()), 256));
  }
  return Skipped(absl::IsNotFound(facts.agent->status()) ? kNotRunning : kNoAnswer);
}

std::span<const Check> AgentChecks() { return kChecks; }

}  // namespace vfio_agent
