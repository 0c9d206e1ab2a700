// Checks of kernel modules: can vfio be had, and which drivers want the cards as well?
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/checks.h"

namespace vfio_agent {
namespace {

const ModuleState& StateOf(const DoctorFacts& facts, std::string_view name) {
  static const ModuleState kNone;
  const auto found = facts.modules.states.find(std::string(name));
  return found == facts.modules.states.end() ? kNone : found->second;
}

std::string Places(const std::vector<std::string>& places) { return absl::StrJoin(places, ", "); }

// What keeps one module from being loaded; a module that is there already is Ok.
Finding JudgeModule(const DoctorFacts& facts, std::string_view name) {
  const ModuleState& state = StateOf(facts, name);
  if (state.IsThere()) {
    return Ok(absl::StrFormat("%s is %s", name, state.built_in ? "built in" : "loaded"));
  }
  const Code code = Code::kVfioDriverMissing;
  if (!state.blocked.empty()) {
    return Fail(
        absl::StrFormat("%s is not loaded and must not be, by %s", name, Places(state.blocked)),
        absl::StrFormat("take %s out of %s, then `modprobe %s`", name, Places(state.blocked), name),
        code);
  }
  // Another module pulls these in; only vfio_pci is loaded by its name, and then a blacklist
  // counts.
  if (!state.blacklisted.empty() && name == "vfio_pci") {
    return Fail(
        absl::StrFormat("%s is not loaded, and blacklisted in %s", name, Places(state.blacklisted)),
        absl::StrFormat("take %s out of %s, then `modprobe %s`", name, Places(state.blacklisted),
                        name),
        code);
  }
  if (facts.modules.loading_off) {
    return Fail(absl::StrFormat("%s is not loaded, and kernel.modules_disabled is 1", name),
                absl::StrFormat("put %s into /etc/modules-load.d, before modules are locked, and "
                                "boot",
                                name),
                code);
  }
  if (state.installed) return Ok(absl::StrFormat("%s can be loaded", name));
  if (!facts.modules.lists_known) {
    return Unknown(absl::StrFormat("%s is not loaded", name));
  }
  return Fail(absl::StrFormat("%s is neither loaded nor installed for this kernel", name),
              "install the package with this kernel's extra modules (linux-modules-extra-…, "
              "kernel-modules-…), or another kernel",
              code);
}

// Where one can do without a module, that it is missing is no failure.
Finding JudgeNeed(const DoctorFacts& facts, std::string_view name) {
  Finding finding = JudgeModule(facts, name);
  if (finding.state == State::kOk) return finding;
  // Only guests that are given /dev/iommu need it; kernels before 6.2 have none.
  if (name == "iommufd" && !facts.settings.iommufd) return Ok("iommufd is not there, nor wanted");
  // A kernel may have iommufd answer on /dev/vfio/vfio (IOMMUFD_VFIO_CONTAINER).
  if (name == "vfio_iommu_type1" && StateOf(facts, "iommufd").IsThere()) {
    finding.state = State::kWarn;
    finding.read += "; iommufd is there, and may stand in for it";
  }
  return finding;
}

Findings VfioModules(const DoctorFacts& facts) {
  std::vector<std::string> fine;
  std::vector<std::string> unknown;
  Findings findings;
  for (const std::string_view name : {"vfio", "vfio_pci", "vfio_iommu_type1", "iommufd"}) {
    Finding finding = JudgeNeed(facts, name);
    if (finding.state == State::kOk) {
      fine.push_back(std::move(finding.read));
    } else if (finding.state == State::kUnknown) {
      unknown.emplace_back(name);
    } else {
      findings.push_back(std::move(finding));
    }
  }
  if (!unknown.empty()) {
    findings.push_back(
        Unknown(absl::StrFormat("not loaded: %s; modules.dep of this kernel cannot be seen",
                                absl::StrJoin(unknown, ", ")),
                "mount the host's /lib/modules into the pod, or `modprobe vfio-pci` on the host"));
  }
  if (!fine.empty()) findings.insert(findings.begin(), Ok(absl::StrJoin(fine, ", ")));
  return findings;
}

// How many functions of selected groups `driver` has and is to lose.
int SelectedWith(const DoctorFacts& facts, std::string_view driver) {
  int count = 0;
  if (!facts.picture) return 0;
  for (const GroupPlan& group : facts.picture->plan.groups) {
    if (group.verdict == Verdict::kUnselected || group.makes_mdevs) continue;
    count += static_cast<int>(std::ranges::count_if(group.members, [&](const Member& member) {
      const bool stays = member.role == Role::kPhysical || member.action == MemberAction::kKeep;
      return !stays && member.driver == driver;
    }));
  }
  return count;
}

std::string SpellDriver(const DoctorFacts& facts, std::string_view module) {
  const ModuleState& state = StateOf(facts, module);
  std::vector<std::string> places = state.blacklisted;
  places.insert(places.end(), state.blocked.begin(), state.blocked.end());
  return absl::StrFormat(
      "%s is %s%s", module, state.IsThere() ? "loaded" : "not loaded",
      places.empty() ? "" : absl::StrFormat(" (blacklisted in %s)", Places(places)));
}

Findings GpuDrivers(const DoctorFacts& facts) {
  const std::string read = absl::StrFormat(
      "%s, %s%s", SpellDriver(facts, "nouveau"), SpellDriver(facts, "nvidia"),
      facts.modules.rules_known ? "" : "; modprobe.d of the host cannot be seen from here");
  const int nouveau = SelectedWith(facts, "nouveau");
  if (nouveau > 0) {
    return {Warn(absl::StrFormat("nouveau has %d selected functions; %s", nouveau, read),
                 "echo blacklist nouveau > /etc/modprobe.d/nouveau.conf, update-initramfs -u "
                 "(dracut -f) and boot: to unbind it from the card of the console can hang")};
  }
  const int nvidia = SelectedWith(facts, "nvidia");
  return {Ok(nvidia == 0 ? read
                         : absl::StrFormat("%s; it has %d selected functions, until they are bound",
                                           read, nvidia))};
}

// The second is what guests' vGPUs run by: another manager only where none are wanted.
constexpr std::array kManagers =
    std::to_array<std::string_view>({"vfio-manage", "nvidia-vgpu-mgr"});
constexpr std::array kDaemons = std::to_array<std::string_view>(
    {"nvidia-persiste", "nv-fabricmanage", "nv-hostengine", "dcgm-exporter"});

// NVIDIA's vGPUs are there, or to be, without what runs them.
bool WantsVgpuManager(const DoctorFacts& facts) {
  return facts.vgpus && facts.processes.complete && facts.picture &&
         !facts.picture->facts.vgpu.functions.empty() &&
         SpellProcesses(facts, std::span(kManagers).last(1)).empty();
}

// They keep cards open that the nvidia driver has, so that unbinding waits for them.
Findings GpuDaemons(const DoctorFacts& facts) {
  const auto others = std::span(kManagers).first(facts.vgpus ? 1 : kManagers.size());
  if (const std::string managers = SpellProcesses(facts, others); !managers.empty()) {
    return {Warn("another manager of the cards runs: " + managers,
                 "label the node nvidia.com/gpu.deploy.vfio-manager=false, or exclude its cards "
                 "here (resources[].exclude)",
                 Code::kForeignManager)};
  }
  if (WantsVgpuManager(facts)) {
    return {Warn("vGPUs are configured, and nvidia-vgpu-mgr does not run: no guest starts with one",
                 "systemctl start nvidia-vgpu-mgr (with the operator: its vGPU manager's pod)")};
  }
  const std::string daemons = SpellProcesses(facts, kDaemons);
  if (daemons.empty()) {
    if (facts.processes.complete) return {Ok("none runs")};
    if (facts.view == View::kCopy) return {Unknown("not every process is in the copy")};
    return {Unknown("not every process can be seen from here", "in a pod: hostPID: true")};
  }
  const int nvidia = SelectedWith(facts, "nvidia");
  if (nvidia == 0) return {Ok(daemons + "; no selected card is with the nvidia driver")};
  return {
      Warn(absl::StrFormat("%s; %d selected functions are with the nvidia driver", daemons, nvidia),
           "systemctl stop nvidia-persistenced nvidia-dcgm; for NVSwitch machines that are "
           "given away whole, nvidia-fabricmanager too",
           Code::kInUseHolder)};
}

constexpr std::array kChecks = std::to_array<Check>({
    {Layer::kModules, "vfio modules", VfioModules},
    {Layer::kModules, "GPU drivers", GpuDrivers},
    {Layer::kModules, "GPU daemons", GpuDaemons},
});

}  // namespace

std::span<const Check> ModuleChecks() { return kChecks; }

std::string SpellProcesses(const DoctorFacts& facts, std::span<const std::string_view> commands) {
  std::vector<std::string> spelt;
  for (const HostProcess& process : facts.processes.list) {
    const bool wanted = std::ranges::any_of(
        commands, [&](std::string_view start) { return process.command.starts_with(start); });
    if (!wanted) continue;
    spelt.push_back(
        process.owner.empty()
            ? absl::StrFormat("%s (pid %d)", process.command, process.pid)
            : absl::StrFormat("%s (pid %d, %s)", process.command, process.pid, process.owner));
  }
  return absl::StrJoin(spelt, ", ");
}

}  // namespace vfio_agent
