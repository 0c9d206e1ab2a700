// Uevents: a descriptor that is readable when the kernel says that a device changed.
//
// The only user of libudev. A wake-up and nothing else: no fact is taken from an event, the
// whole picture is read anew. Uses the *kernel's* netlink group, which needs no udev daemon.
// A network namespace of its own gets them as well, one in a user namespace of its own does not:
// the timer is the fallback.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

struct udev;
struct udev_monitor;

namespace vfio_agent {

class Uevents {
 public:
  // Listens for the subsystems pci, vfio and vfio-dev. Unavailable where netlink is refused, or no
  // events come.
  static absl::StatusOr<Uevents> Open();

  int fd() const;
  // Takes all pending events off the queue; returns how many there were. An overflow of the
  // queue counts as an event: something changed.
  int Drain();

 private:
  using Udev = std::unique_ptr<udev, udev* (*)(udev*)>;
  using Monitor = std::unique_ptr<udev_monitor, udev_monitor* (*)(udev_monitor*)>;
  Uevents(Udev udev, Monitor monitor);

  Udev udev_;
  Monitor monitor_;
};

}  // namespace vfio_agent
