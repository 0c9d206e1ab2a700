// Relocation: what a device's group would be in another slot of the machine, or with the IOMMU on.
// Pure: the rule of isolation.h on facts that are changed for the question.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iommu/isolation/isolation.h"

namespace vfio_agent {

// A port of the machine that the card is not in now.
struct Move {
  enum class Outcome { kAlone, kShared, kUnknown };
  PciAddress port;
  std::vector<PciAddress> occupants;  // endpoints that are below it now; empty: free
  Outcome outcome = Outcome::kUnknown;
  std::vector<PciAddress> with;  // kShared: endpoints of other cards that would be in the group
  bool operator==(const Move&) const = default;
};

struct Relocation {
  std::string fixed;             // why it cannot move, a sentence; empty: it can
  std::vector<PciAddress> card;  // what would move with it: its slot, and a switch on the card
  std::vector<Move> moves;       // by port. What is in an occupied one takes the card's place
  bool operator==(const Relocation&) const = default;
};
Relocation SimulateMoves(const NodeFacts& facts, const PciDevice& device);

// As the kernel sets the ports up where an IOMMU is on (pci_enable_acs() in drivers/pci/pci.c):
// every service that it asks for and that the port has.
NodeFacts WithAcsOn(NodeFacts facts);

// The endpoints that would be in the group of `address`, itself included, by the rule for `facts`.
// nullopt where ACS or places are not known.
std::optional<std::vector<PciAddress>> ComputedCompany(const NodeFacts& facts,
                                                       const PciAddress& address);

}  // namespace vfio_agent
