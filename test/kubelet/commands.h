// The command language of fake-kubelet.
#pragma once

#include <iosfwd>

#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {

// Starts a kubelet, prints {"ready":true} and runs the commands of `in` until "quit" or its end:
//
//   wait RESOURCE HEALTHY [SECONDS]        until exactly so many devices are healthy
//   wait-total RESOURCE NUMBER [SECONDS]   until exactly so many are listed
//   saw RESOURCE HEALTHY [SECONDS]         until a list, or a plugin's end, has made it exactly so
//                                          many at any time since the answer of the command before
//   list                                   every resource with its devices
//   allocate RESOURCE ID...                the variables and device nodes of the answer
//   preferred RESOURCE SIZE ID... [-- ID...]   available ids, then those that must be included
//   prestart RESOURCE ID...
//   pod NAMESPACE NAME CONTAINER RESOURCE ID...   all that the container has of the resource
//   pod-gone NAMESPACE NAME
//   pod-resources silent|refuse|answer     how PodResources behaves from now on
//   restart [SECONDS]                      stop, stay down for so long, sweep, start
//   sleep SECONDS
//   quit
//
// The three about pods need a root directory. Each gives one JSON line with "ok" and, where that is
// false, "error". Returns the exit code: 1 where a command failed or the kubelet cannot start.
int RunCommands(const FakeKubelet::Options& options, std::istream& in, std::ostream& out);

}  // namespace vfio_agent
