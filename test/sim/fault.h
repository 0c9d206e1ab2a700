// Fault: what a scenario makes go wrong, where, and how often.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace YAML {
class Node;
}

namespace vfio_agent::sim {

struct Fault {
  std::string device;  // address; "*" for all
  // unbind, bind, override, vfs, create (mdev), remove: a write; drivers_probe: the write to that
  // file; probe: a driver's own probe, whose failure that write does not tell; read:<attribute>
  std::string op;
  int count = -1;  // how often it still happens; -1: always

  std::chrono::milliseconds delay{0};              // before anything else
  std::optional<std::chrono::milliseconds> block;  // after the delay; max(): until released
  bool unkillable = false;                         // blocks even a writer that is killed
  int error = 0;                                   // errno of the write or read; nothing is done
  bool vanish = false;                             // the device leaves the bus
  std::string taken_by;                            // another driver binds the device instead
};

// InvalidArgument with line and key where the text is not a fault.
absl::StatusOr<Fault> ParseFault(const std::string& yaml);
// The same for one that is part of a larger file; throws YamlError.
Fault ReadFault(const YAML::Node& node);

// "EBUSY" -> 16. 0 for a name that is unknown.
int ErrnoFromName(const std::string& name);
// 0 -> "ok", 16 -> "EBUSY".
std::string ErrnoName(int error);

class FaultTable {
 public:
  void Add(const Fault& fault) { faults_.push_back(fault); }
  void Clear() { faults_.clear(); }

  // The first fault for this operation, counted down; nullopt: all goes well.
  std::optional<Fault> Take(const std::string& device, const std::string& op);

 private:
  std::vector<Fault> faults_;
};

}  // namespace vfio_agent::sim
