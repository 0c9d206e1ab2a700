// The Kernel's waiting: device locks, faults, and vfio devices that somebody has open.
#include <algorithm>
#include <cerrno>

#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

using Clock = std::chrono::steady_clock;

// How soon a wait notices that its caller was killed; nobody notifies the condition for that.
constexpr std::chrono::milliseconds kKillCheck{10};

Clock::time_point After(std::chrono::milliseconds time) {
  const Clock::time_point now = Clock::now();
  return time < std::chrono::hours(24) ? now + time : Clock::time_point::max();
}

}  // namespace

int Kernel::WaitUntil(const std::function<bool()>& ready, bool killable, Call& call) {
  while (!ready()) {
    if (shut_down_ || (killable && call.caller.killed())) return EINTR;
    changed_.wait_for(call.lock, kKillCheck);
  }
  return 0;
}

int Kernel::Lock(const DevicePtr& device, Call& call) {
  const int error = WaitUntil([&] { return !device->locked || !device->present; }, true, call);
  if (error != 0) return error;
  if (!device->present) return ENODEV;
  device->locked = true;
  device->released = false;
  return 0;
}

void Kernel::Unlock(const DevicePtr& device) {
  device->locked = false;
  changed_.notify_all();
}

// What the scenario has in store for `op`: 0: nothing, go on; > 0: an errno, nothing was done;
// < 0: the scenario did it all, and the caller is told that it went well.
int Kernel::Suffer(const DevicePtr& device, const std::string& op, Call& call) {
  const std::optional<Fault> fault = faults_.Take(device->facts.address, op);
  if (!fault) return 0;
  device->released = false;
  const auto wait = [&](std::chrono::milliseconds time) {
    const Clock::time_point end = After(time);
    return WaitUntil([&] { return device->released || !device->present || Clock::now() >= end; },
                     !fault->unkillable, call);
  };
  if (const int error = wait(fault->delay)) return error;
  if (fault->block) {
    if (const int error = wait(*fault->block)) return error;
  }
  if (fault->vanish) {
    device->fell_off = true;
    Vanish(device);
  }
  if (!device->present) return fault->error != 0 ? fault->error : ENODEV;
  if (fault->taken_by.empty()) return fault->error;
  Detach(device);
  LoadDriver(fault->taken_by);
  Attach(device, fault->taken_by);
  if (fault->error != 0) return fault->error;
  return op == "bind" ? EBUSY : -1;
}

// A vfio driver's remove waits until whoever has the device open has closed it.
int Kernel::WaitForHolders(const DevicePtr& device, Call& call) {
  device->released = false;
  return WaitUntil(
      [&] {
        const auto driver = drivers_.find(device->driver);
        const bool vfio = driver != drivers_.end() && driver->second.vfio;
        return !vfio || !device->present || !Held(*device) || device->released;
      },
      true, call);
}

bool Kernel::Held(const Device& device) const {
  if (!device.facts.group) return false;
  const auto group = groups_.find(*device.facts.group);
  return group != groups_.end() && !group->second.holders.empty();
}

}  // namespace vfio_agent::sim
