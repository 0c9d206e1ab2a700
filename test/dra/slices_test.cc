#include "agent/dra/slices.h"

#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/str_format.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

DraDevice Named(const std::string& name) {
  return {.name = name, .resource = "nvidia.com/X", .unit = name};
}

std::vector<DraDevice> Many(size_t count) {
  std::vector<DraDevice> devices;
  for (size_t i = 0; i < count; ++i) devices.push_back(Named(absl::StrFormat("device-%03d", i)));
  return devices;
}

std::vector<size_t> Sizes(const std::vector<Json>& slices) {
  std::vector<size_t> sizes;
  for (const Json& slice : slices) sizes.push_back(slice["spec"].value("devices", Json()).size());
  return sizes;
}

const SlicePool kPool = {.node = "node-1", .node_uid = "u-1", .generation = 7};

// A node whose group 14 has two units and whose group 29 has one.
struct DraNode {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 14, "vfio-pci"), Gpu("0000:3c:00.0", 14, "vfio-pci"),
                          Gpu("0000:af:00.0", 29, "vfio-pci")});
  Plan plan;
  Offer offer{.resource = "nvidia.com/TESLA_T4", .serve = Serve::kDra};
  ModelNames names;

  DraNode() {
    Unit("0000:3b:00.0", 14);
    Unit("0000:3c:00.0", 14);
    Unit("0000:af:00.0", 29);
  }
  void Unit(const std::string& id, int group) {
    offer.units.push_back(
        {.id = id, .addresses = {id}, .group = group, .numa_node = 1, .healthy = true});
  }
  std::vector<DraDevice> Devices() const { return MakeDraDevices({offer}, plan, facts, names); }
};

TEST_CASE("a device's name is its address as a DNS label", "[dra]") {
  CHECK(DraDeviceName("0000:3b:00.0") == "0000-3b-00-0");
  CHECK(DraDeviceName("10000:01:00.0") == "10000-01-00-0");
}

TEST_CASE("a device tells where it is and what it is", "[dra]") {
  DraNode node;
  Find(node.facts, "0000:af:00.0").root = "pci0000:ae";
  Find(node.facts, "0000:af:00.0").bars = {{.index = 0, .size_bytes = 16 << 20},
                                           {.index = 1, .size_bytes = uint64_t{64} << 30}};
  const PciDevice& gpu = Find(node.facts, "0000:af:00.0");
  node.names[{gpu.vendor, gpu.device}] = "TU104GL [Tesla T4]\x1b";
  const DraDevice device = node.Devices().back();
  const auto text = [&](const char* name) {
    return std::get<std::string>(device.attributes.at(name));
  };
  CHECK(device.name == "0000-af-00-0");
  CHECK(text("resource.kubernetes.io/pciBusID") == "0000:af:00.0");
  CHECK(text("resource.kubernetes.io/pcieRoot") == "pci0000:ae");
  CHECK(text("resource") == "nvidia.com/TESLA_T4");
  CHECK(text("vendor") == "10de");
  CHECK(text("device") == absl::StrFormat("%04x", gpu.device));
  CHECK(text("model") == "TU104GL [Tesla T4]");
  CHECK(text("vfioDriver") == "vfio-pci");
  CHECK(std::get<int64_t>(device.attributes.at("numaNode")) == 1);
  CHECK(std::get<int64_t>(device.attributes.at("iommuGroup")) == 29);
  CHECK(std::get<bool>(device.attributes.at("isolated")));
  CHECK(device.capacity.at("largestRegion") == uint64_t{64} << 30);
  CHECK(device.capacity.at("regions") == (uint64_t{64} << 30) + (16 << 20));
}

TEST_CASE("VGPU: a mediated device is told by its uuid, with the card that it is a part of",
          "[dra]") {
  constexpr char kUuid[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
  DraNode node;
  node.facts = Node({Gpu("0000:3b:00.0", 14, "nvidia")});
  Find(node.facts, "0000:3b:00.0").root = "pci0000:3a";
  node.facts.mdev.instances = {{kUuid, At("0000:3b:00.0"), "nvidia-222", 40, "nvidia-vgpu-vfio"}};
  node.offer = {.resource = "nvidia.com/GRID_T4-1Q",
                .units = {{.id = kUuid,
                           .addresses = {kUuid},
                           .group = 40,
                           .healthy = true,
                           .mdev_type = "nvidia-222",
                           .type_name = "GRID T4-1Q"}}};
  const DraDevice device = node.Devices().at(0);
  CHECK(device.name == kUuid);
  const auto text = [&](const char* name) {
    return std::get<std::string>(device.attributes.at(name));
  };
  CHECK(text("mdevUUID") == kUuid);
  CHECK(text("type") == "GRID T4-1Q");
  CHECK(text("card") == "0000:3b:00.0");
  CHECK(text("resource.kubernetes.io/pcieRoot") == "pci0000:3a");
  CHECK(text("vfioDriver") == "nvidia-vgpu-vfio");
  CHECK(device.attributes.count("resource.kubernetes.io/pciBusID") == 0);
  CHECK(std::get<int64_t>(device.attributes.at("iommuGroup")) == 40);
}

TEST_CASE("VGPU: a virtual function with a type is told by its address, type and card", "[dra]") {
  DraNode node;
  Find(node.facts, "0000:af:00.0").physfn = At("0000:ae:00.0");
  node.offer.units[2].vgpu_type = "1145";
  node.offer.units[2].type_name = "NVIDIA L40S-1B";
  const DraDevice device = node.Devices().back();
  CHECK(device.attributes.at("resource.kubernetes.io/pciBusID") == DraAttribute("0000:af:00.0"));
  CHECK(device.attributes.at("type") == DraAttribute("NVIDIA L40S-1B"));
  CHECK(device.attributes.at("card") == DraAttribute("0000:ae:00.0"));
  CHECK(device.attributes.count("mdevUUID") == 0);
}

TEST_CASE("what nothing isolates is not called isolated", "[dra]") {
  DraNode node;
  SECTION("the kernel was told to make groups smaller") { node.plan.acs_override = true; }
  SECTION("there is no IOMMU") { node.facts.groups[29].noiommu = true; }
  CHECK_FALSE(std::get<bool>(node.Devices().back().attributes.at("isolated")));
}

TEST_CASE("a NUMA node is told where the resource tells of it", "[dra]") {
  DraNode node;
  node.offer.numa = false;
  CHECK(node.Devices().back().attributes.count("numaNode") == 0);
}

TEST_CASE("a unit that is listed for a pod of the device plugin is no device", "[dra]") {
  DraNode node;
  node.offer.units[1].withdrawn = absl::UnixEpoch();
  CHECK(node.Devices().size() == 2);
}

TEST_CASE("an attribute that is too long is left out", "[dra]") {
  DraNode node;
  node.offer.resource = "nvidia.com/" + std::string(63, 'X');
  CHECK(node.Devices().back().attributes.count("resource") == 0);
}

TEST_CASE("of a group with several units only one can be allocated", "[dra]") {
  const DraNode node;
  const std::vector<Json> slices = MakeSlices(kPool, node.Devices());
  REQUIRE(slices.size() == 2);
  const Json one = {{"value", "1"}};
  CHECK(slices[0]["spec"]["sharedCounters"] ==
        Json::array({{{"name", "groups-0"}, {"counters", {{"group-14", one}}}}}));
  CHECK_FALSE(slices[0]["spec"].contains("devices"));
  const Json& devices = slices[1]["spec"]["devices"];
  const Json consumes =
      Json::array({{{"counterSet", "groups-0"}, {"counters", {{"group-14", one}}}}});
  CHECK(devices[0]["consumesCounters"] == consumes);
  CHECK(devices[1]["consumesCounters"] == consumes);
  CHECK_FALSE(devices[2].contains("consumesCounters"));
}

TEST_CASE("a group is shared with the units of other resources, too", "[dra]") {
  DraNode node;
  Offer other{.resource = "x.com/NIC", .serve = Serve::kDra};
  other.units.push_back(node.offer.units.back());
  other.units[0].id = "0000:af:00.1";
  const auto devices = MakeDraDevices({node.offer, other}, node.plan, node.facts, node.names);
  CHECK(devices[2].shared_groups == std::vector<int>{29});
  CHECK(devices[3].shared_groups == std::vector<int>{29});
}

TEST_CASE("an unhealthy device has a taint, which evicts nobody", "[dra]") {
  DraNode node;
  node.offer.units[2].healthy = false;
  node.offer.units[2].reason = "driver-changed: 0000:af:00.0 is bound to nouveau";
  const std::vector<Json> slices = MakeSlices(kPool, node.Devices());
  const Json& device = slices[1]["spec"]["devices"][2];
  CHECK(device["taints"] == Json::array({{{"key", "vfio-agent/unhealthy"},
                                          {"value", "driver-changed"},
                                          {"effect", "NoSchedule"}}}));
  node.offer.units[2].reason = "no code here";
  CHECK(node.Devices()[2].taint == "unhealthy");
}

TEST_CASE("a slice has no more devices than it may have", "[dra]") {
  CHECK(Sizes(MakeSlices(kPool, Many(128))) == std::vector<size_t>{128});
  CHECK(Sizes(MakeSlices(kPool, Many(129))) == std::vector<size_t>{128, 1});
  std::vector<DraDevice> devices = Many(129);
  devices[0].taint = "held";
  CHECK(Sizes(MakeSlices(kPool, devices)) == std::vector<size_t>{64, 64, 1});
  CHECK(MakeSlices(kPool, {}).empty());
}

TEST_CASE("there are no more counters in a set, and sets in a slice, than may be", "[dra]") {
  std::vector<DraDevice> devices = Many(257);
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].shared_groups = {static_cast<int>(i)};
  }
  const std::vector<Json> slices = MakeSlices(kPool, devices);
  CHECK(slices[0]["spec"]["sharedCounters"].size() == 8);
  CHECK(slices[0]["spec"]["sharedCounters"][7]["counters"].size() == 32);
  CHECK(slices[1]["spec"]["sharedCounters"].size() == 1);
  CHECK(slices[2]["spec"]["devices"].size() == 64);
  std::set<std::string> sets;
  for (const Json& slice : slices) {
    for (const Json& set : slice["spec"].value("sharedCounters", Json::array())) {
      CHECK(sets.insert(set["name"]).second);
    }
  }
}

TEST_CASE("the slices of a pool say which belong together and whose they are", "[dra]") {
  const std::vector<Json> slices = MakeSlices(kPool, Many(129));
  const Json& first = slices[0];
  CHECK(first["apiVersion"] == "resource.k8s.io/v1");
  CHECK(first["metadata"]["name"] == "node-1-vfio-agent-0");
  CHECK(slices[1]["metadata"]["name"] == "node-1-vfio-agent-1");
  CHECK(first["metadata"]["ownerReferences"][0]["uid"] == "u-1");
  CHECK(first["spec"]["driver"] == "vfio-agent");
  CHECK(first["spec"]["nodeName"] == "node-1");
  CHECK(first["spec"]["pool"] ==
        Json({{"name", "node-1"}, {"generation", 7}, {"resourceSliceCount", 2}}));
  SlicePool ownerless = kPool;
  ownerless.node_uid = "";
  CHECK_FALSE(MakeSlices(ownerless, Many(1))[0]["metadata"].contains("ownerReferences"));
}

TEST_CASE("the content of a slice does not hang on its generation", "[dra]") {
  const auto content = [](const SlicePool& pool, const std::vector<DraDevice>& devices) {
    return MakeSlices(pool, devices)[0]["metadata"]["annotations"][kContentAnnotation];
  };
  SlicePool later = kPool;
  later.generation = 8;
  CHECK(content(later, Many(1)) == content(kPool, Many(1)));
  CHECK(content(kPool, Many(2)) != content(kPool, Many(1)));
  // One that stays as it is becomes part of a larger pool.
  CHECK(content(kPool, Many(129)) != content(kPool, Many(128)));
}

TEST_CASE("a node's name may be as long as names may be", "[dra]") {
  SlicePool pool = kPool;
  pool.node = std::string(253, 'n');
  const std::string name = MakeSlices(pool, Many(1))[0]["metadata"]["name"];
  CHECK(name.size() <= 253);
  pool.node.back() = 'm';
  CHECK(MakeSlices(pool, Many(1))[0]["metadata"]["name"] != name);
}

TEST_CASE("bytes are spelt as Kubernetes spells them", "[dra]") {
  CHECK(Quantity(uint64_t{64} << 30) == "64Gi");
  CHECK(Quantity(uint64_t{65} << 20) == "65Mi");
  CHECK(Quantity(256) == "256");
  CHECK(Quantity(0) == "0");
}

}  // namespace
}  // namespace vfio_agent
