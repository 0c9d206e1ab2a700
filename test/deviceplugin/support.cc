#include "test/deviceplugin/support.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace vfio_agent {

namespace fs = std::filesystem;

TempDir::TempDir() {
  char name[] = "/tmp/vfa-XXXXXX";
  if (::mkdtemp(name) == nullptr) ::abort();
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a test may have taken it away itself
  fs::remove_all(path_, ignored);
}

OfferedUnit TestUnit(const std::string& address, std::optional<int> numa_node) {
  const int group = 10 + PciAddress::Parse(address)->bus;
  return {.id = address,
          .addresses = {address},
          .group = group,
          .numa_node = numa_node,
          .members = {address},
          .nodes = {"/dev/vfio/vfio", absl::StrFormat("/dev/vfio/%d", group)},
          .healthy = true};
}

Offer TestOffer(const std::string& resource, std::vector<OfferedUnit> units) {
  return {.resource = resource, .units = std::move(units)};
}

void UnitTree::Add(const OfferedUnit& unit) {
  for (const std::string& member : unit.members) {
    SetDriver(member, "vfio-pci");
    SetGroup(member, unit.group);
  }
  for (const std::string& node : unit.nodes) AddNode(node);
}

void UnitTree::AddAll(const Offer& offer) {
  for (const OfferedUnit& unit : offer.units) Add(unit);
}

void UnitTree::SetDriver(const std::string& address, const std::string& driver) {
  const std::string path = absl::StrFormat("sys/bus/pci/devices/%s/driver", address);
  fs::remove(fs::path(dir_.path()) / path);
  if (!driver.empty()) Link(path, "../../../../bus/pci/drivers/" + driver);
}

void UnitTree::SetGroup(const std::string& address, std::optional<int> group) {
  const std::string link = absl::StrFormat("sys/bus/pci/devices/%s/iommu_group", address);
  if (group) return Link(link, absl::StrFormat("../../../../kernel/iommu_groups/%d", *group));
  fs::remove(fs::path(dir_.path()) / link);
}

void UnitTree::RemoveNode(const std::string& node) { fs::remove(dir_.path() + node); }

void UnitTree::AddNode(const std::string& node) {
  const fs::path path = dir_.path() + node;
  fs::create_directories(path.parent_path());
  std::ofstream file(path);
}

void UnitTree::Link(const std::string& path, const std::string& target) {
  const fs::path full = fs::path(dir_.path()) / path;
  fs::create_directories(full.parent_path());
  fs::remove(full);
  fs::create_symlink(target, full);
}

PluginLoop::PluginLoop(const std::string& dir, const Tree& tree, const std::string& registry_dir)
    : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      plugins_(std::make_unique<Plugins>(
          Plugins::Options{
              .dir = dir, .registry_dir = registry_dir, .tree = &tree, .ledger = &ledger_},
          [this] { ::eventfd_write(wake_.get(), 1); })) {}

PluginLoop::~PluginLoop() { plugins_->Shutdown(absl::Seconds(1)); }

bool PluginLoop::RunUntil(const std::function<bool()>& reached, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  for (;;) {
    for (PluginEvent& event : plugins_->Step(absl::Now() + ahead_)) events_.push_back(event);
    if (reached()) return true;
    if (absl::Now() >= end) return false;
    // What `reached` looks at is not always ours, so it is asked now and then.
    const absl::Duration wait = std::min({plugins_->NextDeadline() - absl::Now() - ahead_,
                                          end - absl::Now(), absl::Milliseconds(20)});
    pollfd waits[] = {{wake_.get(), POLLIN, 0}, {plugins_->watch_fd(), POLLIN, 0}};
    ::poll(waits, 2, static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(wait))));
    eventfd_t value = 0;
    if (waits[0].revents != 0) ::eventfd_read(wake_.get(), &value);
    if (waits[1].revents != 0) plugins_->OnWatch();
  }
}

int PluginLoop::Count(PluginEvent::Kind kind) const {
  return static_cast<int>(std::ranges::count(events_, kind, &PluginEvent::kind));
}

std::string PluginLoop::LastText(PluginEvent::Kind kind) const {
  std::string text;
  for (const PluginEvent& event : events_) {
    if (event.kind == kind) text = event.text;
  }
  return text;
}

}  // namespace vfio_agent
