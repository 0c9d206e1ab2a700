// What holds after each step, whatever it was.
#include <fstream>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/work/group_lock.h"
#include "test/agent/soak.h"

namespace vfio_agent {
namespace {

// The resync time, a picture, the way to the kubelet, and what a busy machine adds.
constexpr absl::Duration kSeen = absl::Seconds(10);
// How long a device that nobody holds may be without a driver: some failed tries in a row.
constexpr absl::Duration kWithoutDriver = absl::Seconds(45);
constexpr long kMoreFds = 16;
constexpr long kMoreKb = 4096;

// A sanitizer keeps freed memory for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryTells = false;
#else
constexpr bool kMemoryTells = true;
#endif

// Its own memory: how much of its program the kernel maps at once is the page cache's matter. 0 for
// a process that has ended.
long OwnKb(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; file >> word;) {
    long kb = 0;
    if (word == "RssAnon:" && file >> kb) return kb;
  }
  return 0;
}

long OpenFds(pid_t pid) {
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/" + std::to_string(pid) + "/fd", error);
  return error ? 0 : std::distance(begin(fds), end(fds));
}

}  // namespace

// A hold counts from the moment at which, after the process or the pod was there, the group was
// seen settled: all its members on vfio-pci, its unit healthy with the kubelet, and no process at
// work on it. Before that the daemon may still be inside a write that it began when nobody held
// the group. A hold that counts goes on counting until its end, whatever happens to the group.
void Soak::CountHolds() {
  for (SoakGroup& group : groups_) {
    if (!group.HeldByTest()) group.held_since.reset();
    if (!group.HeldByTest() || group.held_since) continue;
    if (IsSettled(group)) {
      group.held_since = Writes().size();
    } else {
      ++held_in_transition_;
    }
  }
}

void Soak::CheckHeld() {
  const std::vector<std::string> writes = Writes();
  for (const SoakGroup& group : groups_) {
    if (!group.held_since) continue;
    ++held_checked_;
    for (size_t i = *group.held_since; i < writes.size(); ++i) {
      for (const auto& entry : group.home) {
        if (writes[i].find(entry.first) == std::string::npos) continue;
        INFO(Story());
        FAIL("group " << group.number << " is held, and was written to: " << writes[i]);
      }
    }
  }
}

// A unit that the kubelet takes for healthy and that is not; "" where there is none.
std::string Soak::StrayUnit() const {
  const FakeResources resources = kubelet_->Resources();
  const auto resource = resources.find(kSoakResource);
  if (resource == resources.end() || resource->second.stopped) return "";
  for (const SoakGroup& group : groups_) {
    const auto unit = resource->second.devices.find(group.unit);
    if (unit == resource->second.devices.end() || !unit->second.healthy) continue;
    if (!IsViable(group)) return group.unit;
  }
  return "";
}

void Soak::CheckAdvertised() {
  const FakeResources resources = kubelet_->Resources();
  const auto resource = resources.find(kSoakResource);
  if (resource != resources.end() && !resource->second.stopped) {
    advertised_checked_ += static_cast<int>(resource->second.Healthy());
  }
  const absl::Time start = absl::Now();
  if (StrayUnit().empty()) return;
  const bool seen = Eventually([this] { return StrayUnit().empty(); }, kSeen);
  longest_stray_ = std::max(longest_stray_, absl::Now() - start);
  if (seen) return;
  INFO(Story());
  FAIL(StrayUnit() << " is advertised as healthy, and its group is not on vfio-pci");
}

// What is held must be left alone even so; a job that is stuck or waits for the kernel has the
// group's lock; and while the kubelet does not answer, anything may be held.
bool Soak::MayStayWithoutDriver(const SoakGroup& group) const {
  return group.HeldByTest() || kubelet_silent_ || IsGroupLocked(node_.state_dir(), group.number);
}

void Soak::CheckOwners() {
  const absl::Time now = absl::Now();
  for (const SoakGroup& group : groups_) {
    for (const auto& [address, home] : group.home) {
      const std::string driver = node_.DriverOf(address);
      if (!driver.empty() && driver != "vfio-pci" && driver != home) {
        INFO(Story());
        FAIL(address << " is with " << driver);
      }
      if (!driver.empty() || !IsPresent(address) || MayStayWithoutDriver(group)) {
        without_driver_.erase(address);
        continue;
      }
      const absl::Duration since = now - without_driver_.try_emplace(address, now).first->second;
      longest_without_driver_ = std::max(longest_without_driver_, since);
      if (since <= kWithoutDriver) continue;
      INFO(Story());
      FAIL(address << " has no driver for " << absl::FormatDuration(since));
    }
  }
}

void Soak::CheckFootprint() {
  constexpr size_t kWarm = 20;  // steps
  // Until it has begun, what is measured is the image of this very test, from before exec(): so
  // this is asked first.
  const bool begun = daemon_->CountLines({"event=agent_started"}) > 0;
  const long kb = OwnKb(daemon_->pid()), fds = OpenFds(daemon_->pid());
  INFO(Story());
  if (kb == 0) FAIL("the daemon has ended by itself");
  if (!begun || story_.size() < kWarm) return;
  if (first_kb_ == 0) {
    first_kb_ = kb;
    first_fds_ = fds;
  }
  most_kb_ = std::max(most_kb_, kb);
  most_fds_ = std::max(most_fds_, fds);
  if (fds > first_fds_ + kMoreFds) FAIL(fds << " descriptors, " << first_fds_ << " at first");
  if (kMemoryTells && kb > first_kb_ + kMoreKb) FAIL(kb << " kB, " << first_kb_ << " at first");
}

}  // namespace vfio_agent
