#include "sysfs/uevents.h"

#include <libudev.h>

#include <cerrno>
#include <utility>

#include "sysfs/status.h"

namespace vfio_agent {

Uevents::Uevents(Udev udev, Monitor monitor)
    : udev_(std::move(udev)), monitor_(std::move(monitor)) {}

absl::StatusOr<Uevents> Uevents::Open() {
  Udev udev(::udev_new(), ::udev_unref);
  if (udev == nullptr) return absl::UnavailableError("libudev gave no context");
  Monitor monitor(::udev_monitor_new_from_netlink(udev.get(), "kernel"), ::udev_monitor_unref);
  if (monitor == nullptr) return ErrnoStatus("netlink socket for kernel events");
  for (const char* subsystem : {"pci", "vfio", "vfio-dev"}) {
    ::udev_monitor_filter_add_match_subsystem_devtype(monitor.get(), subsystem, nullptr);
  }
  if (const int result = ::udev_monitor_enable_receiving(monitor.get()); result < 0) {
    return ErrnoStatus(-result, "receive kernel events");
  }
  return Uevents(std::move(udev), std::move(monitor));
}

int Uevents::fd() const { return ::udev_monitor_get_fd(monitor_.get()); }

int Uevents::Drain() {
  int events = 0;
  for (;;) {
    errno = 0;
    udev_device* const device = ::udev_monitor_receive_device(monitor_.get());
    if (device == nullptr) return errno == ENOBUFS ? events + 1 : events;
    ::udev_device_unref(device);
    ++events;
  }
}

}  // namespace vfio_agent
