#include "test/sim/scenario.h"

#include <exception>
#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "test/sim/yaml.h"

namespace vfio_agent::sim {
namespace {

Scenario ReadScenario(YAML::Node root) {
  OnlyKeys(root, "faults vfio_pci drivers processes files links absent notes");
  Scenario scenario;
  scenario.vfio_pci = Text(root["vfio_pci"]);
  root.remove("vfio_pci");
  YAML::Emitter rest;
  rest << root;
  auto extra = ParseMachine(rest.c_str(), "scenario");
  if (!extra.ok()) throw std::runtime_error(std::string(extra.status().message()));
  scenario.extra = *std::move(extra);
  return scenario;
}

}  // namespace

absl::StatusOr<Scenario> ParseScenario(const std::string& yaml) {
  try {
    return ReadScenario(YAML::Load(yaml));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrFormat("scenario: %s", error.what()));
  }
}

absl::StatusOr<Scenario> LoadScenario(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrFormat("scenario file %s cannot be read", path));
  return ParseScenario({std::istreambuf_iterator<char>(in), {}});
}

void ApplyScenario(const Scenario& scenario, Machine& machine) {
  const Machine& extra = scenario.extra;
  if (!scenario.vfio_pci.empty()) machine.vfio_pci = scenario.vfio_pci;
  machine.faults.insert(machine.faults.end(), extra.faults.begin(), extra.faults.end());
  machine.drivers.insert(machine.drivers.end(), extra.drivers.begin(), extra.drivers.end());
  machine.processes.insert(machine.processes.end(), extra.processes.begin(), extra.processes.end());
  for (const auto& [path, text] : extra.files) machine.files[path] = text;
  for (const auto& [path, target] : extra.links) machine.links[path] = target;
  machine.absent.insert(machine.absent.end(), extra.absent.begin(), extra.absent.end());
}

}  // namespace vfio_agent::sim
