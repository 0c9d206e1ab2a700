// LoadNode: a simulated node of bound GPUs, some of which leave the bus and come back all the time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "test/kubelet/fake_kubelet.h"
#include "test/sim/mount.h"

namespace vfio_agent {

inline constexpr char kSteady[] = "nvidia.com/STEADY";
inline constexpr char kMoving[] = "nvidia.com/MOVING";
inline constexpr int kSteadyUnits = 28;
inline constexpr int kMovingUnits = 4;

class LoadNode {
 public:
  // As plain files, which are read as fast as the kernel's, or through the simulated kernel.
  enum class Kind { kPlain, kSimulated };
  static absl::StatusOr<std::unique_ptr<LoadNode>> Make(Kind kind, const std::string& scratch);

  const std::string& root() const { return root_; }
  const std::string& config() const { return config_; }  // a file, with both resources
  // Units of kSteady, each alone in its group.
  static std::vector<std::string> SteadyIds();

  // False where there is no such device, or it is there already.
  bool Unplug(const std::string& id) const;
  bool Plug(const std::string& id) const;

 private:
  LoadNode() = default;

  std::string root_;
  std::string config_;
  std::string away_;                      // where a plain node's devices wait
  std::unique_ptr<sim::SimMount> mount_;  // null for a plain node
};

// Takes one moving device after the other off the bus and puts it back, each time as soon as the
// kubelet has been told of the step before, until the object goes.
class Plugger {
 public:
  Plugger(const LoadNode& node, const FakeKubelet& kubelet);

  int steps() const { return steps_; }
  // "" while every step has reached the kubelet.
  std::string failure() const { return failed_ ? "a hot plug has not reached the kubelet" : ""; }

 private:
  bool Step(const std::string& id, bool plug);

  const LoadNode& node_;
  const FakeKubelet& kubelet_;
  std::atomic<int> steps_ = 0;
  std::atomic<bool> failed_ = false;
  std::jthread thread_;
};

}  // namespace vfio_agent
