// What can be broken on a healthy node, by layers, and what the check says then.
#pragma once

#include <functional>
#include <vector>

#include "test/doctor/healthy.h"

namespace vfio_agent {

using Facts = DoctorFacts;

struct Case {
  const char* check;
  State state;
  const char* says;  // a part of what was read
  std::function<void(Facts&)> breaks;
};

Fact<std::vector<SwapArea>> SwapOn();
void StopKubelet(Facts& facts);
void NoKubeletAtAll(Facts& facts);

// In the order of the layers.
const std::vector<Case>& MachineCases();
const std::vector<Case>& ModuleCases();
const std::vector<Case>& HostCases();
const std::vector<Case>& KubeletCases();

}  // namespace vfio_agent
