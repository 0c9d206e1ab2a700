// FaultNode: a node of many alike groups, so that one run of the agent suffers every cell of the
// fault matrix at once, each in a group of its own.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "agent/work/journal.h"
#include "test/agent/fault_table.h"
#include "test/agent/node.h"

namespace vfio_agent {

struct FunctionState {
  std::string driver;  // "" for none
  std::string driver_override;
  std::string d3cold;
  bool present = true;
  bool operator==(const FunctionState&) const = default;
};
std::ostream& operator<<(std::ostream& out, const FunctionState& state);

// A small file system of the test's own where the agent keeps its journal, for real ENOSPC.
class SmallDisk {
 public:
  explicit SmallDisk(const Node& node);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  // Takes all room but that for so many records.
  void Fill(int records_left = 0) const;
  void MakeRoom() const;

 private:
  std::string path_;
};

// Groups 1 to `groups` are a GPU and its audio function each. Beside them are devices of the host,
// which nothing here may touch: network, disk, another vendor's GPU.
class FaultNode {
 public:
  explicit FaultNode(int groups);

  const Node& node() const { return node_; }
  const SmallDisk& disk() const { return disk_; }
  int groups() const { return groups_; }
  static std::string AddressOf(int group, int function);
  static FunctionState HomeOf(int function);  // as each was at first

  // Lets the step of `cell` in `group` go wrong, as its column says: once, or each time.
  enum class Often { kOnce, kAlways };
  void Inject(const Cell& cell, int group, Often often = Often::kOnce) const;
  // Lets it block until release-blocked, or until the writer is killed.
  void Block(const Cell& cell, int group, bool unkillable) const;
  // Blocks the write before the step of `cell`: what comes next is then its record in the journal.
  void BlockBefore(const Cell& cell, int group, std::string_view table) const;
  void Unblock(int group) const;
  // No faults any more, and what left the bus is back.
  void Repair() const;

  FunctionState StateOf(int group, int function) const;
  Records ReadRecords() const;
  bool HasRecord(int group, int function) const;
  bool IsHome(int group) const;   // drivers, overrides and d3cold_allowed as they were at first
  bool IsTaken(int group) const;  // both with vfio-pci, and the journal has both as done

  // The writes to the group's devices so far, a line each; those that have not returned.
  std::vector<std::string> WritesOf(int group) const;
  size_t Running() const;

  // The checks of the words of the tables.
  void CheckEnd(const Cell& cell, int group) const;
  // Each device on the bus has one owner, and an override only where vfio-pci has it.
  void CheckOneOwnerEach() const;
  // Not one write to the devices of the host.
  void CheckHostUntouched() const;
  // `bind` takes every group and `release` brings every device back to how it was at first,
  // or to the other driver that had taken it.
  void CheckRoundTrip() const;

 private:
  Node node_;
  SmallDisk disk_;
  int groups_;
};

// SIGKILL to the daemon and to all of its children, as the end of a container does.
void KillWithChildren(Daemon& daemon);

}  // namespace vfio_agent
