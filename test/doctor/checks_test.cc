// Each check is content with a healthy node, and tells what is broken, with a remedy.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "sysfs/status.h"
#include "test/doctor/healthy.h"

namespace vfio_agent {
namespace {

using Facts = DoctorFacts;

struct Case {
  const char* check;
  State state;
  const char* says;  // a part of what was read
  std::function<void(Facts&)> breaks;
};

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

// In the order of the layers.
const std::vector<Case>& MachineCases() {
  static const std::vector<Case> cases = {
      {"virtualization", State::kFail, "neither vmx nor svm",
       [](Facts& f) { f.firmware.virtualization = Fact<bool>(false); }},
      {"virtualization", State::kWarn, "no /dev/kvm",
       [](Facts& f) { f.firmware.kvm_node = false; }},
      {"virtualization", State::kUnknown, "cannot be read",
       [](Facts& f) { f.firmware.virtualization = Fact<bool>::Unknown(ENOENT); }},
      {"firmware IOMMU", State::kFail, "no DMAR",
       [](Facts& f) {
         f.firmware.iommu_units.clear();
         f.firmware.iommu_tables = Fact<std::vector<std::string>>(std::vector<std::string>());
         f.picture->facts.iommu.state = IommuState::kOff;
       }},
      {"firmware IOMMU", State::kUnknown, "masks",
       [](Facts& f) {
         f.firmware.iommu_units.clear();
         f.firmware.iommu_tables = Fact<std::vector<std::string>>::Unknown(ENOENT);
         f.picture->facts.iommu.state = IommuState::kOff;
       }},
      {"command line", State::kFail, "intel_iommu=off",
       [](Facts& f) { f.command_line = "quiet intel_iommu=off"; }},
      {"command line", State::kFail, "no intel_iommu=on",
       [](Facts& f) {
         f.command_line = "quiet";
         f.picture->facts.iommu.state = IommuState::kOff;
       }},
      {"IOMMU", State::kFail, "no group",
       [](Facts& f) {
         f.picture->facts.iommu = {.state = IommuState::kOff, .evidence = {"no group"}};
       }},
      {"IOMMU", State::kFail, "noiommu mode",
       [](Facts& f) {
         f.picture->facts.iommu = {.state = IommuState::kNoIommu, .evidence = {"noiommu mode"}};
       }},
      {"IOMMU switches", State::kWarn, "pcie_acs_override",
       [](Facts& f) { f.picture->facts.iommu.acs_override_parameter = true; }},
      {"IOMMU switches", State::kWarn, "allow_unsafe_interrupts",
       [](Facts& f) { f.picture->facts.iommu.unsafe_interrupts = true; }},
      {"IOMMU switches", State::kWarn, "enable_unsafe_noiommu_mode",
       [](Facts& f) { f.picture->facts.iommu.unsafe_noiommu = true; }},
      {"IOMMU switches", State::kWarn, "disable_denylist",
       [](Facts& f) { f.picture->facts.iommu.denylist_disabled = true; }},
  };
  return cases;
}

const std::vector<Case>& ModuleCases() {
  static const std::vector<Case> cases = {
      {"vfio modules", State::kFail, "vfio_pci is neither loaded nor installed",
       [](Facts& f) { f.modules.states["vfio_pci"] = {}; }},
      {"vfio modules", State::kFail, "blacklisted in /etc/modprobe.d/x.conf",
       [](Facts& f) {
         f.modules.states["vfio_pci"] = {.installed = true,
                                         .blacklisted = {"/etc/modprobe.d/x.conf"}};
       }},
      {"vfio modules", State::kFail, "must not be, by the kernel command line",
       [](Facts& f) {
         f.modules.states["vfio"] = {.installed = true, .blocked = {"the kernel command line"}};
       }},
      {"vfio modules", State::kFail, "modules_disabled",
       [](Facts& f) {
         f.modules.states["vfio_pci"] = {.installed = true};
         f.modules.loading_off = true;
       }},
      {"vfio modules", State::kUnknown, "not loaded: vfio_pci",
       [](Facts& f) {
         f.modules.states["vfio_pci"] = {};
         f.modules.lists_known = false;
       }},
      {"vfio modules", State::kFail, "iommufd is neither",
       [](Facts& f) {
         f.modules.states["iommufd"] = {};
         f.settings.iommufd = true;
       }},
      {"vfio modules", State::kWarn, "may stand in for it",
       [](Facts& f) { f.modules.states["vfio_iommu_type1"] = {}; }},
      {"GPU drivers", State::kWarn, "nouveau has 1 selected",
       [](Facts& f) {
         f.picture->facts = Node({Gpu(kGroup26, 26, "nouveau")});
         f.picture->plan = DefaultPlan(f.picture->facts);
       }},
      {"GPU daemons", State::kWarn, "nvidia-persiste (pid 5",
       [](Facts& f) {
         f.processes.list.push_back({.pid = 5, .command = "nvidia-persiste"});
         f.picture->facts = Node({Gpu(kGroup26, 26, "nvidia")});
         f.picture->plan = DefaultPlan(f.picture->facts);
       }},
      {"GPU daemons", State::kWarn, "another manager",
       [](Facts& f) { f.processes.list.push_back({.pid = 5, .command = "vfio-manage"}); }},
      {"GPU daemons", State::kUnknown, "not every process",
       [](Facts& f) { f.processes.complete = false; }},
      {"reading", State::kFail, "no sysfs",
       [](Facts& f) {
         f.picture.reset();
         f.picture_error = "no sysfs";
       }},
      {"reading", State::kWarn, "odd thing", [](Facts& f) { f.notes = {"odd thing"}; }},
      {"selection", State::kWarn, "selects no device",
       [](Facts& f) { f.picture->plan = DefaultPlan(Node({})); }},
      {"selection", State::kWarn, "mode is container", [](Facts& f) { f.passthrough = false; }},
      {"selection", State::kFail, "unit 0000:65:00.0: two errors",
       [](Facts& f) {
         Unit& unit = f.picture->plan.resources.at(0).units.at(0);
         unit.state = UnitState::kUnhealthy;
         unit.reason = "aer-fatal: two errors";
       }},
      {"display", State::kWarn, "holds the console",
       [](Facts& f) {
         f.picture->facts.frame_buffers[At(kGroup26)] = {.text = "holds the console",
                                                         .remedy = "video=efifb:off"};
       }},
  };
  return cases;
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
      {"swap", State::kFail, "cannot be seen from here",
       [](Facts& f) {
         f.memory.swaps = SwapOn();
         StopKubelet(f);
         f.kubelet.files_seen = false;
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
      {"other managers", State::kFail, "KubeVirt's own plugin serves",
       [](Facts& f) {
         std::string name = f.picture->plan.resources.at(0).name;
         std::ranges::replace(name, '/', '-');
         f.kubelet.other_plugins = {"kubevirt-" + name + ".sock"};
       }},
      {"other managers", State::kWarn, "nvidia-kubevirt (pid 6)",
       [](Facts& f) { f.processes.list.push_back({.pid = 6, .command = "nvidia-kubevirt"}); }},
      {"KubeVirt", State::kFail, "nobody listens on /dp/kubevirt-kvm.sock",
       [](Facts& f) {
         f.processes.list.clear();
         f.kubelet.kubevirt_sockets = {{"/dp/kubevirt-kvm.sock", SocketState::kDead}};
       }},
      {"KubeVirt", State::kWarn, "no sign of KubeVirt", [](Facts& f) { f.processes.list.clear(); }},
  };
  return cases;
}

void RunCases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    DoctorFacts facts = HealthyFacts();
    c.breaks(facts);
    const Findings answers = Answers(facts, c.check);
    std::string all;
    for (const Finding& finding : answers) {
      all += std::string(Name(finding.state)) + ": " + finding.read + "\n";
    }
    CAPTURE(c.check, c.says, all);
    const auto wanted = [&](const Finding& finding) {
      return finding.state == c.state && finding.read.find(c.says) != std::string::npos;
    };
    const auto found = std::ranges::find_if(answers, wanted);
    REQUIRE(found != answers.end());
    CHECK((c.state != State::kFail || !found->remedy.empty()));
  }
}

TEST_CASE("on a healthy node every check is content", "[doctor]") {
  const DoctorFacts facts = HealthyFacts();
  for (const CheckedFinding& checked : Diagnose(facts).findings) {
    CAPTURE(checked.name, checked.finding.read, checked.finding.remedy);
    CHECK(checked.finding.state == State::kOk);
  }
  CHECK(Diagnose(facts).causes.empty());
}

TEST_CASE("what is broken in firmware and kernel is told", "[doctor]") { RunCases(MachineCases()); }
TEST_CASE("what is broken with modules and devices is told", "[doctor]") {
  RunCases(ModuleCases());
}
TEST_CASE("what is broken with memory, swap and disk is told", "[doctor]") {
  RunCases(HostCases());
}
TEST_CASE("what is broken with kubelet, daemon and KubeVirt is told", "[doctor]") {
  RunCases(KubeletCases());
}

TEST_CASE("each check has a case in which it is not content", "[doctor]") {
  // These sort the plan's codes; "each code is told by one check" is their test.
  std::set<std::string_view> cases = {"groups",          "isolation", "host use",
                                      "reserved memory", "reset",     "power and bus",
                                      "binding",         "guests",    "names"};
  for (const auto& list : {MachineCases(), ModuleCases(), HostCases(), KubeletCases()}) {
    for (const Case& c : list) cases.insert(c.check);
  }
  for (const Check& check : AllChecks()) {
    CAPTURE(check.name);
    CHECK(cases.contains(check.name));
  }
}

TEST_CASE("each code is told by one check, as a failure unless it waits for a guest", "[doctor]") {
  for (int i = 0; i <= static_cast<int>(Code::kForeignManager); ++i) {
    const Code code = static_cast<Code>(i);
    DoctorFacts facts = HealthyFacts();
    facts.picture->plan.refusals = {
        {.code = code, .group = 26, .text = "why", .remedy = "what to do"}};
    CAPTURE(CodeName(code));
    int told = 0;
    for (const CheckedFinding& checked : Diagnose(facts).findings) {
      if (checked.finding.state == State::kOk) continue;
      ++told;
      CHECK(checked.layer == Layer::kDevices);
      CHECK(checked.finding.code == code);
      CHECK(checked.finding.read == "group 26: why");
      CHECK(checked.finding.remedy == "what to do");
      const bool patient =
          code == Code::kHeld || code == Code::kGroupSplit || code == Code::kExcluded;
      CHECK((checked.finding.state == State::kWarn) == patient);
    }
    CHECK(told == 1);
  }
}

TEST_CASE("a warning of the plan is a warning here, and says when it was overruled", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.picture->plan.warnings = {{.code = Code::kInUseNetwork, .text = "up", .overruled = true}};
  const Findings answers = Answers(facts, "host use");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].state == State::kWarn);
  CHECK(answers[0].read == "up (overruled by guard.override)");
}

TEST_CASE("what a daemon is at work on passes by itself", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.picture->plan.refusals = {
      {.code = Code::kForeignManager, .group = 26, .text = "at work", .remedy = "wait"}};
  CHECK(Answers(facts, "host use").at(0).state == State::kFail);
  facts.picture->custody.underway.elsewhere = {26};
  CHECK(Answers(facts, "host use").at(0).state == State::kWarn);
}

TEST_CASE("eight cards with one cause are one line", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.picture->plan.refusals.clear();
  for (int group = 0; group < 8; ++group) {
    facts.picture->plan.refusals.push_back(
        {.code = Code::kNoIommuGroup, .group = group, .text = "why"});
  }
  const Findings answers = Answers(facts, "groups");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].read == "group 0: why; and 7 more of this kind: group 1; group 2; group 3; …");
}

TEST_CASE("a kubelet that allows swap, or none at all, is not minded", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.memory.swaps = SwapOn();
  facts.kubelet.config.fail_swap_on = false;
  facts.kubelet.config.swap_behavior = "LimitedSwap";
  CHECK(Answers(facts, "swap").at(0).read ==
        "on: /swapfile (file, 8 GiB); the kubelet allows it (LimitedSwap)");
  NoKubeletAtAll(facts);
  CHECK(Answers(facts, "swap").at(0).state == State::kOk);
  facts.memory.swaps = {};  // a kernel without swap
  CHECK(Answers(facts, "swap").at(0).state == State::kOk);
}

TEST_CASE("a machine that somebody started by hand is a warning", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  Unit& unit = facts.picture->plan.resources.at(0).units.at(0);
  unit.state = UnitState::kUnhealthy;
  unit.reason = "in-use-holder: pid 4711 (qemu-system-x86)";
  CHECK(Answers(facts, "selection").at(1).state == State::kWarn);
}

TEST_CASE("of a copy without processes nothing is said about the kubelet", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.view = View::kCopy;
  facts.processes = {};
  facts.kubelet = KubeletFacts();
  facts.kubelet.asked = false;
  facts.kubelet.config_file = "/var/lib/kubelet/config.yaml";
  for (const char* check : {"kubelet", "plugin directory", "pod resources", "checkpoint"}) {
    CAPTURE(check);
    facts.kubelet.plugin_dir = absl::NotFoundError("not copied");
    CHECK(Answers(facts, check).at(0).state == State::kUnknown);
  }
}

}  // namespace
}  // namespace vfio_agent
