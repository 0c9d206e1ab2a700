// Guest: what the container runtime, KubeVirt and QEMU would object to in an answer of Allocate,
// by what the node's own files say. Reads them without the agent's readers.
#pragma once

#include <string>
#include <vector>

#include "proto/deviceplugin_v1beta1.pb.h"
#include "test/kubevirt/launcher.h"

namespace vfio_agent::kubevirt {

// The answer's variables.
Variables VariablesOf(const v1beta1::ContainerAllocateResponse& answer);

// One sentence for each objection, empty where there is none. `root`: the node's; `devices`: what
// the launcher makes of the answer.
std::vector<std::string> Objections(const std::string& root,
                                    const v1beta1::ContainerAllocateResponse& answer,
                                    const std::vector<GuestDevice>& devices);

}  // namespace vfio_agent::kubevirt
