// vfio-probe: what a virtual machine monitor does with a group, and no more.
//
//   vfio-probe group GROUP                    is the group viable?
//   vfio-probe open GROUP ADDRESS...          container, IOMMU, DMA mapping, device, config space
//   vfio-probe hold GROUP ADDRESS SECONDS     the same, then keeps the device open until SIGTERM
//
// GROUP is a number or the path of its node. One "key=value ..." line for each step on stdout.
// Exit codes: 0 done, 1 the kernel refused a step, 2 usage, 3 the group is not viable, 4 the node
// is not there, 5 somebody else has the group open.
// Source: include/uapi/linux/vfio.h and Documentation/driver-api/vfio.rst of Linux 6.1.

#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/fd.h"

namespace {

using vfio_agent::Fd;

constexpr int kRefused = 1;
constexpr int kUsage = 2;
constexpr int kNotViable = 3;
constexpr int kNoNode = 4;
constexpr int kBusy = 5;

constexpr size_t kMappedBytes = 1 << 20;
constexpr uint64_t kMappedAt = 0x100000;

// Prints the step with the kernel's answer; call it right after the system call.
bool Report(const char* step, bool done) {
  const char* const answer = done ? "ok" : ::strerrorname_np(errno);
  std::printf("step=%s result=%s\n", step, answer);
  return done;
}

std::string NodePath(std::string_view group) {
  if (group.starts_with('/')) return std::string(group);
  return "/dev/vfio/" + std::string(group);
}

// Opens the node and asks for its state. An exit code, 0 when viable.
int OpenGroup(std::string_view group_name, Fd& group) {
  const std::string path = NodePath(group_name);
  group = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const int error = errno;
  if (!Report("open-group", group.valid())) {
    if (error == ENOENT) return kNoNode;
    return error == EBUSY ? kBusy : kRefused;
  }
  vfio_group_status status{.argsz = sizeof status, .flags = 0};
  if (!Report("group-status", ::ioctl(group.get(), VFIO_GROUP_GET_STATUS, &status) == 0)) {
    return kRefused;
  }
  const bool viable = (status.flags & VFIO_GROUP_FLAGS_VIABLE) != 0;
  std::printf("group=%s viable=%d\n", path.c_str(), viable ? 1 : 0);
  return viable ? 0 : kNotViable;
}

// What an open group consists of. The container must outlive the group's devices, so it is first.
struct Session {
  Fd container;
  Fd group;
  std::vector<Fd> devices;
};

bool MapMemory(const Fd& container) {
  void* const memory = ::mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return Report("mmap", false);
  vfio_iommu_type1_dma_map map{.argsz = sizeof map,
                               .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
                               .vaddr = reinterpret_cast<uintptr_t>(memory),
                               .iova = kMappedAt,
                               .size = kMappedBytes};
  return Report("map-dma", ::ioctl(container.get(), VFIO_IOMMU_MAP_DMA, &map) == 0);
}

int Attach(std::string_view group_name, Session& session) {
  session.container = Fd(::open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC));
  if (!Report("open-container", session.container.valid())) return kNoNode;
  const int container = session.container.get();
  if (const int code = OpenGroup(group_name, session.group); code != 0) return code;
  if (!Report("set-container",
              ::ioctl(session.group.get(), VFIO_GROUP_SET_CONTAINER, &container) == 0)) {
    return kRefused;
  }
  if (!Report("set-iommu", ::ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0)) {
    return kRefused;
  }
  return MapMemory(session.container) ? 0 : kRefused;
}

// The ids as the guest would see them, read through the device's own descriptor.
bool ReadConfig(const Fd& device, const std::string& address) {
  vfio_region_info region{.argsz = sizeof region, .index = VFIO_PCI_CONFIG_REGION_INDEX};
  if (!Report("region-info", ::ioctl(device.get(), VFIO_DEVICE_GET_REGION_INFO, &region) == 0)) {
    return false;
  }
  std::array<unsigned char, 4> ids{};
  const ssize_t got =
      ::pread(device.get(), ids.data(), ids.size(), static_cast<off_t>(region.offset));
  if (!Report("read-config", got == static_cast<ssize_t>(ids.size()))) return false;
  std::printf("device=%s id=%02x%02x:%02x%02x\n", address.c_str(), ids[1], ids[0], ids[3], ids[2]);
  return true;
}

int OpenDevice(const std::string& address, Session& session) {
  Fd device(::ioctl(session.group.get(), VFIO_GROUP_GET_DEVICE_FD, address.c_str()));
  if (!Report("get-device", device.valid())) return kRefused;
  vfio_device_info info{.argsz = sizeof info};
  if (!Report("device-info", ::ioctl(device.get(), VFIO_DEVICE_GET_INFO, &info) == 0)) {
    return kRefused;
  }
  if (!ReadConfig(device, address)) return kRefused;
  session.devices.push_back(std::move(device));
  return 0;
}

int OpenAll(std::string_view group, const std::vector<std::string>& addresses, Session& session) {
  int code = Attach(group, session);
  for (const std::string& address : addresses) {
    if (code == 0) code = OpenDevice(address, session);
  }
  return code;
}

// An eventfd that fires when the kernel wants the device back; not valid where it refused.
Fd WatchRequests(const Fd& device) {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // The structure ends in a flexible array: here one descriptor.
  constexpr size_t kSetBytes = sizeof(vfio_irq_set) + sizeof(int);
  alignas(vfio_irq_set) std::array<unsigned char, kSetBytes> buffer{};
  vfio_irq_set set{.argsz = kSetBytes,
                   .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                   .index = VFIO_PCI_REQ_IRQ_INDEX,
                   .start = 0,
                   .count = 1};
  const int fd = event.get();
  std::memcpy(buffer.data(), &set, sizeof set);
  std::memcpy(buffer.data() + sizeof set, &fd, sizeof fd);
  const bool done = ::ioctl(device.get(), VFIO_DEVICE_SET_IRQS, buffer.data()) == 0;
  return Report("watch-requests", done) ? std::move(event) : Fd();
}

// SIGTERM and SIGINT as a descriptor. Blocked before the device is opened, so that a signal
// that comes early is not lost.
Fd WatchSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC));
}

int64_t NowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Keeps the device through every request of the kernel, as a guest does that does not react.
void KeepUntil(int64_t deadline_ms, const Fd& signals, const Fd& requests) {
  int count = 0;
  for (int64_t left = deadline_ms - NowMs(); left > 0; left = deadline_ms - NowMs()) {
    std::array<pollfd, 2> waits{pollfd{signals.get(), POLLIN, 0},
                                pollfd{requests.get(), POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), static_cast<int>(left)) <= 0) continue;
    if (waits[0].revents != 0) return;
    uint64_t fired = 0;
    if (::read(requests.get(), &fired, sizeof fired) == sizeof fired) {
      std::printf("event=request count=%d\n", ++count);
    }
  }
}

int Hold(std::string_view group, const std::string& address, int seconds) {
  const Fd signals = WatchSignals();
  Session session;
  if (const int code = OpenAll(group, {address}, session); code != 0) return code;
  const Fd requests = WatchRequests(session.devices.front());
  if (!requests.valid()) return kRefused;
  std::printf("state=held device=%s\n", address.c_str());
  KeepUntil(NowMs() + int64_t{seconds} * 1000, signals, requests);
  std::printf("state=released device=%s\n", address.c_str());
  return 0;
}

std::optional<int> ParseSeconds(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return seconds;
}

int Usage() {
  std::fprintf(stderr,
               "usage: vfio-probe group GROUP | open GROUP ADDRESS... | "
               "hold GROUP ADDRESS SECONDS\n");
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  // Readers wait for single lines.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 2 && args[0] == "group") {
    Fd group;
    return OpenGroup(args[1], group);
  }
  if (args.size() >= 3 && args[0] == "open") {
    Session session;
    return OpenAll(args[1], {args.begin() + 2, args.end()}, session);
  }
  if (args.size() == 4 && args[0] == "hold") {
    if (const std::optional<int> seconds = ParseSeconds(args[3])) {
      return Hold(args[1], args[2], *seconds);
    }
  }
  return Usage();
}
