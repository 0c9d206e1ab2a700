// Verification: is a unit, in the kernel's eyes and right now, still what was offered?
#pragma once

#include "absl/status/status.h"
#include "deviceplugin/offer/offer.h"
#include "sysfs/device/driver_files.h"

namespace vfio_agent {

class Tree;

// Reads two links of each endpoint in the unit's group and looks for its device nodes: a few
// system calls, no write, nothing that waits for a device; for the type of an SR-IOV vGPU it calls
// `ask` (empty: its driver is waited for). It is the last look before a guest gets the unit, and
// before a container is started again from an answer that the kubelet remembered, over reboots too.
//
// OK: every address that the answer names is on a vfio driver, every other endpoint of the group
// is on one or on none (which the kernel accepts as well), all are still in the unit's group, and
// the device nodes are there. Otherwise FailedPrecondition with the first thing that is not so,
// "<unit>: <code>: …". Thread-safe.
absl::Status VerifyUnit(const Tree& tree, const OfferedUnit& unit, const AskDrivers& ask = {});

}  // namespace vfio_agent
