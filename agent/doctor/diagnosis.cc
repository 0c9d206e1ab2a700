#include "agent/doctor/diagnosis.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "agent/doctor/checks.h"

namespace vfio_agent {
namespace {

constexpr uint32_t Bit(Layer layer) { return uint32_t{1} << static_cast<unsigned>(layer); }

struct LayerRow {
  Layer layer;
  std::string_view name;
  uint32_t rests_on;  // directly; lower ones only. Checks that have a row in kNeeds go by that
  // Each check of the layer needs what the ones before it ask for; elsewhere each has a cause of
  // its own: two groups that are refused have nothing to do with each other.
  bool chained;
};

constexpr std::array<LayerRow, 10> kLayers = {{
    {Layer::kProcessor, "processor", 0, false},
    {Layer::kFirmware, "firmware", 0, false},
    {Layer::kKernel, "kernel", Bit(Layer::kFirmware), true},
    {Layer::kModules, "modules", Bit(Layer::kKernel), false},
    {Layer::kDevices, "devices", Bit(Layer::kModules), false},
    {Layer::kHost, "host", 0, false},
    {Layer::kRuntime, "runtime", 0, false},
    {Layer::kKubelet, "kubelet", 0, false},
    {Layer::kAgent, "agent", 0, false},
    {Layer::kKubevirt, "kubevirt", 0, false},
}};

// What stops a kubelet, and the kubelet.
constexpr std::array kNoKubelet = std::to_array<std::string_view>(
    {"swap", "container runtime", "configuration", "resource managers", "kubelet"});
constexpr std::array kNotOffered =
    std::to_array<std::string_view>({"swap", "container runtime", "configuration",
                                     "resource managers", "kubelet", "plugin directory"});
constexpr std::array kFiles = std::to_array<std::string_view>({"configuration"});
constexpr std::array kJournal = std::to_array<std::string_view>({"state directory"});
constexpr std::array kApi = std::to_array<std::string_view>({"API server"});
constexpr uint32_t kCards =
    Bit(Layer::kFirmware) | Bit(Layer::kKernel) | Bit(Layer::kModules) | Bit(Layer::kDevices);

// Above the devices a layer has checks that have little to do with each other: a file of the
// kubelet's is not broken because the runtime is down. Each says what it may come of, over any
// number of steps; what is not here comes of nothing. A kubelet does not mind a card that is
// refused, but nothing is offered without either.
struct Needs {
  std::string_view check;
  uint32_t layers;
  std::span<const std::string_view> checks;
};
constexpr std::array kNeeds = std::to_array<Needs>({
    {"resource managers", 0, kFiles},
    {"kubelet", 0, kNoKubelet},
    {"plugin directory", 0, kNoKubelet},
    {"pod resources", 0, kNoKubelet},
    {"daemon", kCards, kJournal},
    {"writes", kCards, {}},
    {"registration", kCards, kNotOffered},
    {"mode", 0, kApi},
    {"KubeVirt", Bit(Layer::kProcessor), kNoKubelet},
});

const LayerRow& RowOf(Layer layer) { return kLayers.at(static_cast<size_t>(layer)); }

// All that `layer` rests on, over any number of steps.
uint32_t Below(Layer layer) {
  uint32_t below = RowOf(layer).rests_on;
  for (size_t i = kLayers.size(); i-- > 0;) {
    if ((below & Bit(kLayers[i].layer)) != 0) below |= kLayers[i].rests_on;
  }
  return below;
}

// True where `upper` may come of `lower`, the failure of a check before it.
bool Follows(const CheckedFinding& upper, const CheckedFinding& lower) {
  const auto needs = std::ranges::find(kNeeds, upper.name, &Needs::check);
  if (needs != kNeeds.end()) {
    return (needs->layers & Bit(lower.layer)) != 0 ||
           std::ranges::count(needs->checks, lower.name) != 0;
  }
  if (upper.layer == lower.layer) return RowOf(upper.layer).chained;
  return (Below(upper.layer) & Bit(lower.layer)) != 0;
}

}  // namespace

std::vector<RootCause> FindCauses(const std::vector<CheckedFinding>& findings) {
  std::vector<size_t> failed;
  for (size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].finding.state == State::kFail) failed.push_back(i);
  }
  std::vector<RootCause> causes;
  for (const size_t failure : failed) {
    bool follows = false;
    for (RootCause& cause : causes) {
      if (!Follows(findings[failure], findings[cause.cause])) continue;
      cause.explains.push_back(failure);
      follows = true;
    }
    if (!follows) causes.push_back({.cause = failure});
  }
  return causes;
}

Diagnosis Diagnose(const DoctorFacts& facts) {
  Diagnosis diagnosis{.view = facts.view};
  for (const Check& check : AllChecks()) {
    for (Finding& finding : check.look(facts)) {
      diagnosis.findings.push_back(
          {.layer = check.layer, .name = std::string(check.name), .finding = std::move(finding)});
    }
  }
  diagnosis.causes = FindCauses(diagnosis.findings);
  return diagnosis;
}

std::vector<Check> AllChecks() {
  std::vector<Check> all;
  for (const auto checks : {MachineChecks(), ModuleChecks(), DeviceChecks(), HostChecks(),
                            KubeletChecks(), AgentChecks()}) {
    all.insert(all.end(), checks.begin(), checks.end());
  }
  return all;
}

std::string_view Name(Layer layer) { return RowOf(layer).name; }

std::string_view Name(State state) {
  constexpr std::array<std::string_view, 5> kNames = {"ok", "warn", "fail", "unknown", "skipped"};
  return kNames.at(static_cast<size_t>(state));
}

std::string_view Name(View view) {
  constexpr std::array<std::string_view, 3> kNames = {"host", "pod", "copy"};
  return kNames.at(static_cast<size_t>(view));
}

}  // namespace vfio_agent
