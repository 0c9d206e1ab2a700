// The cases of the machine, its kernel and its modules.
#include "test/doctor/check_cases.h"
#include "sysfs/status.h"

namespace vfio_agent {

namespace {

// No IOMMU, and something is served all the same since resources[].noiommu says so.
void ServeUnsafe(Facts& facts) {
  facts.picture->facts.iommu = {.state = IommuState::kNoIommu, .evidence = {"noiommu mode"}};
  facts.picture->plan.iommu = facts.picture->facts.iommu;
  facts.picture->plan.warnings = {{.code = Code::kNoiommu, .group = 26, .text = "UNSAFE: x"}};
}

}  // namespace

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
      {"command line", State::kUnknown, "whether an IOMMU is on is not known here",
       [](Facts& f) {
         f.command_line = "quiet";
         f.picture->facts.iommu.state = IommuState::kUnknown;
       }},
      {"IOMMU", State::kFail, "no group",
       [](Facts& f) {
         f.picture->facts.iommu = {.state = IommuState::kOff, .evidence = {"no group"}};
       }},
      {"IOMMU", State::kFail, "noiommu mode",
       [](Facts& f) {
         f.picture->facts.iommu = {.state = IommuState::kNoIommu, .evidence = {"noiommu mode"}};
       }},
      {"IOMMU", State::kWarn, "UNSAFE, served all the same", ServeUnsafe},
      {"command line", State::kWarn, "UNSAFE, served all the same",
       [](Facts& f) {
         ServeUnsafe(f);
         f.command_line = "quiet intel_iommu=off";
       }},
      {"firmware IOMMU", State::kWarn, "UNSAFE, served all the same",
       [](Facts& f) {
         ServeUnsafe(f);
         f.firmware.iommu_units.clear();
         f.firmware.iommu_tables = Fact<std::vector<std::string>>(std::vector<std::string>());
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
      {"GPU daemons", State::kWarn, "another manager",
       [](Facts& f) { f.processes.list.push_back({.pid = 5, .command = "nvidia-vgpu-mgr"}); }},
      {"GPU daemons", State::kOk, "none runs",
       [](Facts& f) {
         f.vgpus = true;
         f.picture->facts.vgpu.functions = {{.current = Fact<int>(0)}};
         f.processes.list.push_back({.pid = 5, .command = "nvidia-vgpu-mgr"});
       }},
      {"GPU daemons", State::kWarn, "nvidia-vgpu-mgr does not run",
       [](Facts& f) {
         f.vgpus = true;
         f.picture->facts.vgpu.functions = {{.current = Fact<int>(0)}};
       }},
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
      {"selection", State::kWarn, "1 refused: none can be offered",
       [](Facts& f) {
         f.picture->facts = Node(
             {Function(kGroup26, 26, "nvidia", "10de:2330", 0x030200), Nvme("0000:66:00.0", 26)});
         f.picture->plan = DefaultPlan(f.picture->facts);
       }},
      {"selection", State::kWarn, "no device can be offered",
       [](Facts& f) {
         f.picture->plan.resources.clear();
         f.picture->plan.refusals = {{.code = Code::kVfioDriverMissing, .group = 26}};
       }},
      {"selection", State::kOk, "no device can be offered",
       [](Facts& f) { f.picture->plan.resources.clear(); }},
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

}  // namespace vfio_agent
