// Diagnosis: the doctor's checks, from the bottom layer up, and what they say of a node. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/doctor/facts.h"
#include "iommu/code.h"

namespace vfio_agent {

enum class Layer {
  kProcessor,
  kFirmware,
  kKernel,
  kModules,
  kDevices,
  kHost,  // memory and disk
  kRuntime,
  kKubelet,
  kAgent,
  kKubevirt,
};

// kSkipped: there is nothing that the check is for.
enum class State { kOk, kWarn, kFail, kUnknown, kSkipped };

// One answer of a check.
struct Finding {
  State state = State::kOk;
  std::string read;          // what was seen, a sentence without a full stop
  std::string remedy;        // empty where there is nothing to do
  std::optional<Code> code;  // where one of the closed list fits
};

struct Check {
  Layer layer;
  std::string_view name;
  std::vector<Finding> (*look)(const DoctorFacts& facts);  // at least one
};

// In the order of the layers; within one layer the first is what the others rest on.
std::vector<Check> AllChecks();

struct CheckedFinding {
  Layer layer = Layer::kProcessor;
  std::string name;
  Finding finding;
};

// A failure with nothing failed below it, and the failures that rest on it.
struct RootCause {
  size_t cause = 0;  // both: places in Diagnosis::findings
  std::vector<size_t> explains;
};

struct Diagnosis {
  View view = View::kHost;
  std::vector<CheckedFinding> findings;
  std::vector<RootCause> causes;
};

Diagnosis Diagnose(const DoctorFacts& facts);
// The same from findings: which failures are causes, which follow.
std::vector<RootCause> FindCauses(const std::vector<CheckedFinding>& findings);

std::string_view Name(Layer layer);
std::string_view Name(State state);
std::string_view Name(View view);

}  // namespace vfio_agent
