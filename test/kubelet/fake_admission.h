// FakeAdmission: how the kubelet hands devices to containers, and what its checkpoint keeps of it.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {

// What a container was given: the kubelet hands the same answer out again for as long as the pod
// lives, over restarts of the container, of itself and of the node, without asking the plugin.
struct FakeAssignment {
  std::vector<std::string> ids;
  v1beta1::ContainerAllocateResponse answer;
};

// Outlives the restarts of its kubelet, as the checkpoint file does.
class FakeAdmission {
 public:
  // "pod/container".
  using Container = std::string;

  explicit FakeAdmission(FakeKubelet& kubelet, unsigned seed = 1)
      : kubelet_(kubelet), random_(seed) {}

  // A container that asks for `count` devices is admitted: with what it has already, if that is
  // healthy and of that number, else with free ones by GetPreferredAllocation and Allocate.
  absl::StatusOr<FakeAssignment> Admit(const Container& container, const std::string& resource,
                                       size_t count);
  // An admitted container starts, for the first time or again: PreStartContainer, nothing else.
  absl::StatusOr<FakeAssignment> StartContainer(const Container& container,
                                                const std::string& resource);
  void Remove(const Container& container);

  // Ids of the resource that containers have.
  std::set<std::string> Allocated(const std::string& resource) const;
  int allocate_calls() const { return allocate_calls_; }

 private:
  absl::Status CheckHealthy(const std::string& resource, const std::vector<std::string>& ids) const;
  absl::StatusOr<std::vector<std::string>> Choose(const std::string& resource, size_t count);

  FakeKubelet& kubelet_;
  std::mt19937 random_;
  int allocate_calls_ = 0;
  std::map<Container, std::map<std::string, FakeAssignment>> assigned_;  // then by resource
};

}  // namespace vfio_agent
