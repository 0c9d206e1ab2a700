// The doctor's checks, by the files that they are in. Pure functions of facts.
#pragma once

#include <span>

#include "agent/doctor/diagnosis.h"

namespace vfio_agent {

std::span<const Check> MachineChecks();  // processor, firmware, kernel
std::span<const Check> ModuleChecks();
std::span<const Check> DeviceChecks();
std::span<const Check> HostChecks();     // memory, swap, disk
std::span<const Check> KubeletChecks();  // runtime, kubelet
std::span<const Check> AgentChecks();    // agent, kubevirt

// Of them those that are in a file of their own, checks_mode.cc.
std::vector<Finding> LookAtApiServer(const DoctorFacts& facts);
std::vector<Finding> LookAtMode(const DoctorFacts& facts);

// What the daemon says of itself; null where there is none to tell, and NoStatus() says why.
const AgentStatus* StatusOf(const DoctorFacts& facts);
Finding NoStatus(const DoctorFacts& facts);

// What the checks share.
using Findings = std::vector<Finding>;

inline Finding Skipped(std::string read) {
  return {.state = State::kSkipped, .read = std::move(read)};
}
inline Finding Ok(std::string read) { return {.state = State::kOk, .read = std::move(read)}; }
inline Finding Warn(std::string read, std::string remedy, std::optional<Code> code = {}) {
  return {State::kWarn, std::move(read), std::move(remedy), code};
}
inline Finding Fail(std::string read, std::string remedy, std::optional<Code> code = {}) {
  return {State::kFail, std::move(read), std::move(remedy), code};
}
inline Finding Unknown(std::string read, std::string remedy = "") {
  return {State::kUnknown, std::move(read), std::move(remedy)};
}

// Whether the kubelet of the node works, as far as can be seen from outside.
enum class Alive { kYes, kNo, kUnknown };
Alive KubeletAlive(const DoctorFacts& facts);
// Whether there is any sign of a kubelet on this node, running or not.
bool KubeletExpected(const DoctorFacts& facts);

// The processes whose command begins with `command`: "nvidia-persiste (pid 812,
// nvidia-persistenced.service)"; empty for none.
std::string SpellProcesses(const DoctorFacts& facts, std::span<const std::string_view> commands);

// Whether the kernel's IOMMU is on, as the picture has it; unknown without a picture.
IommuState IommuOf(const DoctorFacts& facts);

}  // namespace vfio_agent
