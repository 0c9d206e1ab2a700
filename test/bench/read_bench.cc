// read-bench DIR [ROUNDS]: a full read of the node below DIR against a minimal loop that makes just
// the system calls which the same facts need. Prints medians and their ratio.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "iommu/isolation/isolation.h"
#include "iommu/plan/plan.h"
#include "sysfs/device/config_space.h"
#include "sysfs/node_facts.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr std::array<const char*, 12> kFiles = {
    "vendor",    "device",       "class",       "subsystem_vendor", "subsystem_device", "revision",
    "numa_node", "reset_method", "power_state", "resource",         "modalias",         "config"};
constexpr std::array<const char*, 2> kLinks = {"driver", "iommu_group"};

void ReadAttribute(int dir, const char* name) {
  static std::array<char, 4096> buffer;
  const int fd = ::openat(dir, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  ::close(fd);
}

// One device: its link, its directory's entries, each attribute once.
void ReadDevice(int devices, const char* name) {
  static std::array<char, PATH_MAX> target;
  [[maybe_unused]] ssize_t n = ::readlinkat(devices, name, target.data(), target.size());
  DIR* const dir = ::fdopendir(::openat(devices, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir == nullptr) return;
  while (::readdir(dir) != nullptr) {  // NOLINT(concurrency-mt-unsafe): one thread
  }
  for (const char* file : kFiles) ReadAttribute(::dirfd(dir), file);
  for (const char* link : kLinks) n = ::readlinkat(::dirfd(dir), link, target.data(), PATH_MAX);
  ::closedir(dir);
}

size_t MinimalLoop(const std::string& root) {
  const std::string path = root + "/sys/bus/pci/devices";
  DIR* const dir = ::opendir(path.c_str());
  if (dir == nullptr) return 0;
  size_t devices = 0;
  while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): one thread
    if (entry->d_name[0] == '.') continue;
    ReadDevice(::dirfd(dir), entry->d_name);
    ++devices;
  }
  ::closedir(dir);
  return devices;
}

template <typename Work>
double MedianMs(int rounds, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const absl::Time start = absl::Now();
    work();
    times.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

int Main(const std::string& root, int rounds) {
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  if (!tree.ok()) return 1;
  ConfigReader config(*tree);
  const ModuleFacts modules = ReadModuleFacts(*tree);
  const absl::StatusOr<NodeFacts> facts = TakeNodeFacts(*tree, config, modules);
  if (!facts.ok() || MinimalLoop(root) != facts->devices.size()) return 1;
  const double loop = MedianMs(rounds, [&] { MinimalLoop(root); });
  const double full = MedianMs(rounds, [&] { (void)TakeNodeFacts(*tree, config, modules); });
  const double plan =
      MedianMs(rounds, [&] { (void)MakePlan(*facts, DefaultPolicy(), ModelNames()); });
  std::printf(
      "functions=%zu loop_ms=%.2f read_ms=%.2f plan_ms=%.2f read/loop=%.2f plan/loop=%.2f\n",
      facts->devices.size(), loop, full, plan, full / loop, plan / loop);
  return 0;
}

}  // namespace
}  // namespace vfio_agent

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: read-bench DIR [ROUNDS]\n", stderr);
    return 2;
  }
  return vfio_agent::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : 15);
}
