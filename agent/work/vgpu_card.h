// Jobs that set vGPU types: one function of a card after the other, since each leaves less room for
// the next one, and how much only the driver knows.
#pragma once

#include <optional>
#include <set>

#include "agent/work/job.h"
#include "agent/work/jobs.h"
#include "sysfs/device/driver_files.h"

namespace vfio_agent {

class Tree;

// The virtual function that `job` gives a vGPU type; nullopt for other jobs.
std::optional<PciAddress> VgpuFunctionOf(const Job& job);

// Another virtual function of the same card is being given a type.
bool WaitsForCard(const Job& job, const Jobs& jobs, const Tree& tree);

// Which cards have been given a type in one run, and whether they have room for more. One thread;
// `tree` outlives it.
class VgpuCards {
 public:
  explicit VgpuCards(const Tree& tree);

  // True where the card lists the type of `job` no more. Waits for its driver for two seconds at
  // most; one that does not answer is asked by the job.
  bool IsFull(const Job& job);

 private:
  const Tree& tree_;
  const AskDrivers ask_;
  std::set<PciAddress> begun_;
};

}  // namespace vfio_agent
