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
  uint32_t rests_on;  // directly; lower ones only
  // Each check of the layer needs what the ones before it ask for; elsewhere each has a cause of
  // its own: two groups that are refused have nothing to do with each other.
  bool chained;
};

// A kubelet does not mind a card that is refused, but nothing is offered without either.
constexpr std::array<LayerRow, 10> kLayers = {{
    {Layer::kProcessor, "processor", 0, false},
    {Layer::kFirmware, "firmware", 0, false},
    {Layer::kKernel, "kernel", Bit(Layer::kFirmware), true},
    {Layer::kModules, "modules", Bit(Layer::kKernel), false},
    {Layer::kDevices, "devices", Bit(Layer::kModules), false},
    {Layer::kHost, "host", 0, false},
    {Layer::kRuntime, "runtime", 0, false},
    {Layer::kKubelet, "kubelet", Bit(Layer::kHost) | Bit(Layer::kRuntime), true},
    {Layer::kAgent, "agent", Bit(Layer::kDevices) | Bit(Layer::kKubelet), false},
    {Layer::kKubevirt, "kubevirt", Bit(Layer::kProcessor) | Bit(Layer::kAgent), false},
}};

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
bool Follows(Layer upper, Layer lower) {
  if (upper == lower) return RowOf(upper).chained;
  return (Below(upper) & Bit(lower)) != 0;
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
      if (!Follows(findings[failure].layer, findings[cause.cause].layer)) continue;
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
  constexpr std::array<std::string_view, 4> kNames = {"ok", "warn", "fail", "unknown"};
  return kNames.at(static_cast<size_t>(state));
}

std::string_view Name(View view) {
  constexpr std::array<std::string_view, 3> kNames = {"host", "pod", "copy"};
  return kNames.at(static_cast<size_t>(view));
}

}  // namespace vfio_agent
