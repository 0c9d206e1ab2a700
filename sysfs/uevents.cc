#include "sysfs/uevents.h"

#include <fcntl.h>
#include <libudev.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The kernel sends its events to the network namespaces of its first user namespace alone
// (lib/kobject_uevent.c, uevent_net_init). That one has a fixed number (PROC_USER_INIT_INO,
// include/linux/proc_ns.h). Where the owner is not to be seen it is above this process: most
// likely the first.
bool EventsComeHere() {
  constexpr ino_t kFirst = 0xEFFFFFFDU;
  const Fd network(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  const Fd owner(network.valid() ? ::ioctl(network.get(), NS_GET_USERNS) : -1);
  struct stat file = {};
  return !owner.valid() || ::fstat(owner.get(), &file) != 0 || file.st_ino == kFirst;
}

}  // namespace

Uevents::Uevents(Udev udev, Monitor monitor)
    : udev_(std::move(udev)), monitor_(std::move(monitor)) {}

absl::StatusOr<Uevents> Uevents::Open() {
  if (!EventsComeHere()) {
    return absl::UnavailableError(
        "the network namespace belongs to a user namespace of its own, to which the kernel sends "
        "no events");
  }
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
