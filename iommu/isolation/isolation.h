// Isolation: which functions the hardware keeps apart, by the kernel's own rule. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sysfs/node_facts.h"

namespace vfio_agent {

// What pci_acs_enabled() of the kernel (drivers/pci/pci.c) says of one function.
enum class AcsVerdict {
  kEnabled,    // the needed services are on, or hard-wired (absent from the capability)
  kNotNeeded,  // a single-function endpoint or upstream port: ACS does not apply
  kQuirk,      // no usable ACS, but the kernel vouches for this device (drivers/pci/quirks.c)
  kNoAcs,      // the capability is missing, or conventional PCI: peers can be reached
  kOff,        // the capability is there and bits are switched off
  kUnknown,    // the extended config space was not readable
};

struct AcsState {
  AcsVerdict verdict = AcsVerdict::kUnknown;
  uint16_t missing = 0;  // the bits that are off, of those that the kernel asks for (0x001d)

  // Unknown is not isolation, and not the lack of it: ask known() first.
  bool Isolates() const {
    return verdict == AcsVerdict::kEnabled || verdict == AcsVerdict::kNotNeeded ||
           verdict == AcsVerdict::kQuirk;
  }
  bool known() const { return verdict != AcsVerdict::kUnknown; }
  bool operator==(const AcsState&) const = default;
};

// REQ_ACS_FLAGS of drivers/iommu/iommu.c: source validation, request redirect, completion
// redirect, upstream forwarding.
inline constexpr uint16_t kRequiredAcs = 0x001d;

AcsState CheckAcs(const PciDevice& device);

// "SourceValid ReqRedir …" in lspci's words, for the bits of `mask`.
std::string AcsBits(uint16_t mask);
// One sentence about a port or function: "ACS off: ReqRedir CmpltRedir".
std::string Describe(const AcsState& state);

// Why a function shares the group of another.
struct Merge {
  enum class Kind {
    kPort,      // a port on the way to the root does not isolate
    kFunction,  // functions of one slot that can reach each other
    kAlias,     // behind a PCIe-to-PCI bridge: requests carry the bridge's id
  };
  PciAddress device;
  PciAddress with;
  Kind kind = Kind::kPort;
  PciAddress culprit;  // the port, function or bridge that does not isolate
  AcsState acs;        // its state
  bool operator==(const Merge&) const = default;
};

// The grouping that the kernel's rule gives for the hardware as it is.
struct Grouping {
  std::vector<Merge> merges;
  // Functions whose place cannot be told, since ACS on their way is unknown or the tree has no
  // parents.
  std::vector<PciAddress> unknown;
  // Representative of each function's computed group; equal = same group.
  std::map<PciAddress, PciAddress> root;
};

// pci_device_group() of drivers/iommu/iommu.c as a union of sets.
Grouping ComputeGrouping(const NodeFacts& facts);

// A merge that the kernel did not make although the hardware needs it: its groups are finer than
// the hardware allows. Empty where all is as computed.
std::vector<Merge> FindFinerGroups(const NodeFacts& facts, const Grouping& grouping);

}  // namespace vfio_agent
