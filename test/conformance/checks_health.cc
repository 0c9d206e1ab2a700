// Devices that fall ill, heal, go and come back.
#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"
#include "test/conformance/list_stream.h"

namespace vfio_agent::conformance {
namespace {

bool IsHealthy(const FakeResource& resource, const std::string& id) {
  const auto found = resource.devices.find(id);
  return found != resource.devices.end() && found->second.healthy;
}

// Heals or brings back on leaving, whatever has happened.
class Away {
 public:
  Away(Stand& stand, std::string back, std::string id)
      : stand_(stand), back_(std::move(back)), id_(std::move(id)) {}
  ~Away() {
    // A hook that fails here shows in the next check: the device is still away.
    if (!done_) stand_.RunHook(back_, id_).IgnoreError();
  }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;
  absl::Status Back() {
    done_ = true;
    return stand_.RunHook(back_, id_);
  }

 private:
  Stand& stand_;
  const std::string back_, id_;
  bool done_ = false;
};

// Runs `hook` on a device and waits until the kubelet has it as unhealthy.
absl::Status MakeSick(Stand& stand, const std::string& hook, const std::string& id) {
  RETURN_IF_ERROR(stand.RunHook(hook, id));
  return stand.WaitFor("say that a device is unhealthy",
                       [&](const FakeResource& resource) { return !IsHealthy(resource, id); });
}

absl::Status ThereAndBack(Stand& stand, const std::string& there, const std::string& back) {
  if (there.empty() || back.empty()) return NotTried("no hook to do that");
  const Ids ids = stand.Ids();
  const std::string id = ids.back();
  Away away(stand, back, id);
  RETURN_IF_ERROR(MakeSick(stand, there, id));
  const FakeCapacity sick = stand.kubelet().Capacity()[stand.resource()];
  RETURN_IF_ERROR(Require(sick == FakeCapacity{ids.size(), ids.size() - 1},
                          "%d of %d devices with one sick, where %d of %d are right",
                          sick.allocatable, sick.capacity, ids.size() - 1, ids.size()));
  RETURN_IF_ERROR(away.Back());
  RETURN_IF_ERROR(stand.WaitFor("say that the device is healthy again",
                                [&](const FakeResource& it) { return IsHealthy(it, id); }));
  return Require(stand.Ids() == ids, "other ids than before");
}

absl::Status Flip(Stand& stand) {
  return ThereAndBack(stand, stand.options().on_unhealthy, stand.options().on_healthy);
}

absl::Status RemovedStays(Stand& stand) {
  return ThereAndBack(stand, stand.options().on_removed, stand.options().on_returned);
}

absl::Status SickIsRefused(Stand& stand) {
  const SuiteOptions& options = stand.options();
  if (options.on_unhealthy.empty() || options.on_healthy.empty()) return NotTried("no hook");
  const std::string id = stand.Ids().back();
  Away away(stand, options.on_healthy, id);
  RETURN_IF_ERROR(MakeSick(stand, options.on_unhealthy, id));
  RETURN_IF_ERROR(Require(!Allocate(stand, {{id}}).ok(), "Allocate of a sick device succeeds"));
  RETURN_IF_ERROR(away.Back());
  return stand.WaitFor("heal", [&](const FakeResource& it) { return IsHealthy(it, id); });
}

absl::Status AllStreamsHear(Stand& stand) {
  const SuiteOptions& options = stand.options();
  if (options.on_unhealthy.empty() || options.on_healthy.empty()) return NotTried("no hook");
  const std::string id = stand.Ids().back();
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  ListStream second(plugin);
  Away away(stand, options.on_healthy, id);
  RETURN_IF_ERROR(MakeSick(stand, options.on_unhealthy, id));
  const auto heard = [&](const Lists& lists) {
    if (lists.empty()) return false;
    for (const auto& device : lists.back().devices()) {
      if (device.id() == id) return device.health() == "Unhealthy";
    }
    return false;
  };
  RETURN_IF_ERROR(Require(second.WaitFor(heard, options.timeout),
                          "a second stream is not told that a device is unhealthy"));
  RETURN_IF_ERROR(away.Back());
  return stand.WaitFor("heal", [&](const FakeResource& it) { return IsHealthy(it, id); });
}

// A kubelet that starts while a device is sick must hear of it: what it does not know is healthy.
absl::Status SickAfterRestart(Stand& stand) {
  const SuiteOptions& options = stand.options();
  if (options.on_unhealthy.empty() || options.on_healthy.empty()) return NotTried("no hook");
  const std::string id = stand.Ids().back();
  Away away(stand, options.on_healthy, id);
  RETURN_IF_ERROR(MakeSick(stand, options.on_unhealthy, id));
  RETURN_IF_ERROR(stand.RestartKubelet());
  RETURN_IF_ERROR(stand.WaitFor("tell a new kubelet of all devices", [&](const FakeResource& it) {
    return it.Healthy() + 1 >= options.devices;
  }));
  RETURN_IF_ERROR(Require(!stand.kubelet().PodStatusHealthy(id),
                          "a new kubelet takes a sick device for healthy"));
  RETURN_IF_ERROR(away.Back());
  return stand.WaitServed();
}

constexpr auto kPlugin = Check::Needs::kPlugin;

constexpr Check kChecks[] = {
    {"health-both-ways", "R30", "one device less can be given while it is sick, none is lost",
     kPlugin, Flip},
    {"health-refused", "R53", "a sick device is refused", kPlugin, SickIsRefused},
    {"health-all-streams", "R13", "every open stream hears of a sick device", kPlugin,
     AllStreamsHear},
    {"health-new-kubelet", "R28", "a new kubelet hears of a sick device", kPlugin,
     SickAfterRestart},
    {"removed-stays", "R28", "a device that goes stays in the list, as Unhealthy", kPlugin,
     RemovedStays},
};

}  // namespace

std::span<const Check> HealthChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
