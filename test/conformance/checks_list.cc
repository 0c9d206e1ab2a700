// What stands in the lists, and when they come.
#include <algorithm>
#include <regex>
#include <set>

#include "sysfs/status.h"
#include "test/conformance/check.h"
#include "test/conformance/list_stream.h"

namespace vfio_agent::conformance {
namespace {

constexpr absl::Duration kAtOnce = absl::Seconds(1);
constexpr absl::Duration kQuiet = absl::Seconds(2);
constexpr size_t kLongestId = 63;
constexpr size_t kLargestList = 4 * 1024 * 1024;

using Device = v1beta1::Device;

// What a list says, whatever the order.
std::vector<std::string> Contents(const v1beta1::ListAndWatchResponse& list) {
  std::vector<std::string> devices;
  for (const Device& device : list.devices()) devices.push_back(device.SerializeAsString());
  std::ranges::sort(devices);
  return devices;
}

std::vector<Device> Listed(const Stand& stand) {
  const v1beta1::ListAndWatchResponse list = stand.Now().newest;
  return {list.devices().begin(), list.devices().end()};
}

bool Any(const Lists& lists) { return !lists.empty(); }

absl::Status AtOnce(Stand& stand) {
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  ListStream stream(plugin);
  return Require(stream.WaitFor(Any, kAtOnce), "no list within %s of ListAndWatch",
                 absl::FormatDuration(kAtOnce));
}

absl::Status SecondStream(Stand& stand) {
  ASSIGN_OR_RETURN(const auto plugin, stand.kubelet().Raw(stand.resource()));
  ListStream one(plugin);
  RETURN_IF_ERROR(Require(one.WaitFor(Any, stand.options().timeout), "a second stream is not fed"));
  ListStream two(plugin);
  RETURN_IF_ERROR(Require(two.WaitFor(Any, stand.options().timeout), "a third stream is not fed"));
  RETURN_IF_ERROR(Require(Contents(one.lists()[0]) == Contents(stand.Now().newest) &&
                              Contents(two.lists()[0]) == Contents(stand.Now().newest),
                          "streams that are open at one time are told different lists"));
  const absl::Status lost = stand.WaitFor(
      "", [&](const FakeResource& now) { return now.stopped; }, kAtOnce / 2);
  return Require(!one.ended() && !lost.ok(), "a new stream ends the ones before it");
}

absl::Status Quiet(Stand& stand) {
  const FakeResource before = stand.Now();
  RETURN_IF_ERROR(
      Require(before.repeats == 0, "%d lists said what the one before said", before.repeats));
  const absl::Status more = stand.WaitFor(
      "", [&](const FakeResource& now) { return now.messages > before.messages; }, kQuiet);
  return Require(!more.ok(), "a list came within %s, though nothing changed",
                 absl::FormatDuration(kQuiet));
}

absl::Status UniqueIds(Stand& stand) {
  std::set<std::string> seen;
  for (const Device& device : Listed(stand)) {
    RETURN_IF_ERROR(Require(seen.insert(device.id()).second, "id \"%s\" stands twice in one list",
                            device.id()));
  }
  return absl::OkStatus();
}

absl::Status UniqueOnNode(Stand& stand) {
  const FakeResources resources = stand.kubelet().Resources();
  if (resources.size() < 2) return NotTried("it serves one resource only");
  std::set<std::string> seen;
  for (const auto& [name, resource] : resources) {
    for (const auto& entry : resource.devices) {
      RETURN_IF_ERROR(Require(seen.insert(entry.first).second,
                              "id \"%s\" of %s is one of another resource too", entry.first, name));
    }
  }
  return absl::OkStatus();
}

absl::Status IdShape(Stand& stand) {
  static const std::regex kShape("[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?");
  for (const std::string& id : stand.Ids()) {
    RETURN_IF_ERROR(Require(id.size() <= kLongestId, "id \"%s\" has %d bytes", id, id.size()));
    RETURN_IF_ERROR(Require(std::regex_match(id, kShape), "id \"%s\" is no CDI device name", id));
  }
  return absl::OkStatus();
}

absl::Status HealthWords(Stand& stand) {
  for (const Device& device : Listed(stand)) {
    RETURN_IF_ERROR(Require(device.health() == "Healthy" || device.health() == "Unhealthy",
                            "health of \"%s\" is \"%s\"", device.id(), device.health()));
  }
  return absl::OkStatus();
}

absl::Status AllOrNoTopology(Stand& stand) {
  const std::vector<Device> devices = Listed(stand);
  const auto with = std::ranges::count_if(devices, &Device::has_topology);
  return Require(with == 0 || with == std::ssize(devices),
                 "%d of %d devices have a topology: the others can never be aligned", with,
                 devices.size());
}

absl::Status NoEmptyTopology(Stand& stand) {
  for (const Device& device : Listed(stand)) {
    RETURN_IF_ERROR(Require(!device.has_topology() || device.topology().nodes_size() > 0,
                            "the topology of \"%s\" names no node", device.id()));
    for (const auto& node : device.topology().nodes()) {
      RETURN_IF_ERROR(Require(node.id() >= 0, "\"%s\" is on node %d", device.id(), node.id()));
    }
  }
  return absl::OkStatus();
}

absl::Status ListSize(Stand& stand) {
  const size_t size = stand.Now().newest.ByteSizeLong();
  return Require(size < kLargestList, "a list of %d bytes, the kubelet takes less than 4 MiB",
                 size);
}

constexpr auto kPlugin = Check::Needs::kPlugin;

constexpr Check kChecks[] = {
    {"list-at-once", "R23", "the first list comes at once", kPlugin, AtOnce},
    {"second-stream", "R13", "several streams at a time are fed alike", kPlugin, SecondStream},
    {"quiet", "R24", "no list comes without a change", kPlugin, Quiet},
    {"unique-ids", "R25", "no id stands twice in a list", kPlugin, UniqueIds},
    {"unique-on-node", "R25", "no two resources have an id in common", kPlugin, UniqueOnNode},
    {"id-shape", "R25", "ids have 63 bytes at most and are CDI names", kPlugin, IdShape},
    {"health-words", "R29", "health is exactly Healthy or Unhealthy", kPlugin, HealthWords},
    {"topology-all-or-none", "R31", "all devices have a topology, or none", kPlugin,
     AllOrNoTopology},
    {"topology-not-empty", "R31", "a topology names a node, and a real one", kPlugin,
     NoEmptyTopology},
    {"list-size", "R34", "a list has less than 4 MiB", kPlugin, ListSize},
};

}  // namespace

std::span<const Check> ListChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
