// Reads what a file says to KubeVirt: which devices are permitted, which ones machines ask for.
// The file is anybody's: sizes are bounded, and every error says where.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/kubevirt/kubevirt.h"

namespace vfio_agent {

// An entry of permittedHostDevices: of pciHostDevices, or of one of the other lists, which share
// one set of names with it.
struct PermittedDevice {
  bool pci = true;
  std::string selector;  // pciVendorSelector as it stands there
  std::string resource;
  bool external = false;
  std::string where;  // "cr.yaml:12:9: spec.configuration.…"
  bool operator==(const PermittedDevice&) const = default;
};

struct KubevirtConfiguration {
  std::string where;
  bool restricts = false;  // permittedHostDevices is there; without it everything is permitted
  std::vector<PermittedDevice> permitted;
  std::set<std::string> feature_gates;
  bool operator==(const KubevirtConfiguration&) const = default;
};

struct WantedDevice {
  MachineList list = MachineList::kGpus;
  std::string resource;  // deviceName; empty where there is none
  bool claimed = false;  // by a resource claim instead
  std::string where;
  bool operator==(const WantedDevice&) const = default;
};

struct KubevirtMachine {
  std::string title;  // "VirtualMachine demo/h100"
  std::vector<WantedDevice> devices;
  bool operator==(const KubevirtMachine&) const = default;
};

struct KubevirtFile {
  std::vector<KubevirtConfiguration> configurations;
  std::vector<KubevirtMachine> machines;
  bool operator==(const KubevirtFile&) const = default;
};

// YAML or JSON, any number of documents: KubeVirt, VirtualMachine, VirtualMachineInstance, Lists of
// them, or KubeVirt's spec.configuration alone. Other objects beside these are skipped.
// InvalidArgument where there is none of them, and where one has not its form.
absl::StatusOr<KubevirtFile> ParseKubevirtFile(const std::string& text, const std::string& name);

// The same from a file, or from standard input where `path` is "-".
absl::StatusOr<KubevirtFile> ReadKubevirtFile(const std::string& path);

}  // namespace vfio_agent
