// What the suite is told of the plugin that it is to try.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent::conformance {

struct SuiteOptions {
  // The plugin's command line. {dir} and {root} stand for the two directories of the kubelet, here
  // and in the hooks; in those, {id} stands for the device.
  std::vector<std::string> command;
  std::string resource;  // empty: the first one that has devices
  size_t devices = 0;    // that it serves when all is well; 0: found out at the first start
  std::vector<FakeKubelet::Generation> generations = {FakeKubelet::Generation::k136,
                                                      FakeKubelet::Generation::k137};
  std::vector<std::string> only;  // shell patterns for a check's name or rule; none: all
  std::vector<std::string> skip;  // likewise
  // Shell commands that make one device sick, heal it, take it away and bring it back. Without
  // one, what needs it is not tried.
  std::string on_unhealthy, on_healthy, on_removed, on_returned;
  // Directories for plugins that cannot be told others; empty: temporary ones.
  std::string dir, root;
  std::string device_root;  // put in front of the host paths of devices when looking for them
  absl::Duration timeout = absl::Seconds(30);  // for whatever the plugin is to do in the end
};

}  // namespace vfio_agent::conformance
