#include "deviceplugin/offer/egm_nodes.h"

#include "absl/strings/str_join.h"
#include "catch2/catch.hpp"
#include "deviceplugin/offer/allocate.h"
#include "deviceplugin/offer/preferred.h"
#include "test/deviceplugin/support.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

using Ids = std::vector<std::string>;
const Ids kGpus = {"0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0"};

EgmShare Share(const std::string& node, const Ids& gpus) {
  EgmShare share{.node = node, .resource = "nvidia.com/X", .units = gpus};
  for (const std::string& gpu : gpus) share.gpus.push_back(*PciAddress::Parse(gpu));
  return share;
}

// Four units below host bridges of their own, the outer two of one region and the inner two of the
// other, so that nearness does not help.
Offer GraceOffer() {
  std::vector<OfferedUnit> units;
  for (size_t i = 0; i < kGpus.size(); ++i) {
    units.push_back(TestUnit(kGpus[i], 0));
    units.back().group = static_cast<int>(i);
  }
  Offer offer = TestOffer("nvidia.com/X", std::move(units));
  offer.egm = {Share("/dev/egm4", {kGpus[0], kGpus[3]}), Share("/dev/egm5", {kGpus[1], kGpus[2]})};
  return offer;
}

struct Grace {
  Grace() {
    tree.Write("dev/egm4", "").Write("dev/egm5", "");
    tree.Write("sys/class/egm/egm4/gpu_devices", "0008:01:00.0\n0019:01:00.0\n");
    tree.Write("sys/class/egm/egm5/gpu_devices", "0009:01:00.0\n0018:01:00.0\n");
  }

  // The nodes of the answer that are no VFIO's; or the error.
  std::string Nodes(const Ids& ids) {
    const IndexedOffer indexed(offer);
    auto units = FindUnits(indexed, ids);
    REQUIRE(units.ok());
    std::deque<OfferedUnit> own;
    const absl::Status status = AddEgmNodes(tree.Open(), offer, *units, own);
    if (!status.ok()) return std::string(status.message());
    std::string text;
    const auto answer = MakeAllocation(offer, *units);
    for (const auto& node : answer.devices()) {
      if (node.host_path().find("/dev/vfio/") == std::string::npos) text += node.host_path() + " ";
      if (!text.empty()) CHECK(node.permissions() == "mrw");
    }
    return text;
  }

  Offer offer = GraceOffer();
  FakeTree tree;
};

TEST_CASE("a container has a region's node with all of its GPUs and never with fewer",
          "[deviceplugin]") {
  Grace grace;
  CHECK(grace.Nodes({kGpus[0]}).empty());
  CHECK(grace.Nodes({kGpus[0], kGpus[1]}).empty());
  CHECK(grace.Nodes({kGpus[3], kGpus[0]}) == "/dev/egm4 ");
  CHECK(grace.Nodes({kGpus[3], kGpus[0], kGpus[1]}) == "/dev/egm4 ");
  CHECK(grace.Nodes(kGpus) == "/dev/egm4 /dev/egm5 ");
}

TEST_CASE("units without a whole region are answered as they stand in the offer",
          "[deviceplugin]") {
  const Grace grace;
  const IndexedOffer indexed(grace.offer);
  auto units = *FindUnits(indexed, {kGpus[0], kGpus[1]});
  const auto before = units;
  std::deque<OfferedUnit> own;
  REQUIRE(AddEgmNodes(grace.tree.Open(), grace.offer, units, own).ok());
  CHECK(units == before);
  CHECK(own.empty());
}

TEST_CASE("a region that is another one than in the offer is not given", "[deviceplugin]") {
  Grace grace;
  const Ids both = {kGpus[0], kGpus[3]};
  SECTION("it has one GPU more") {
    grace.tree.Write("sys/class/egm/egm4/gpu_devices",
                     "0008:01:00.0\n0009:01:00.0\n0019:01:00.0\n");
    CHECK(grace.Nodes(both) ==
          "/dev/egm4: group-changed: it belongs to other GPUs than a moment ago");
  }
  SECTION("its list cannot be read") {
    grace.tree.Remove("sys/class/egm/egm4");
    CHECK(grace.Nodes(both) ==
          "/dev/egm4: group-changed: it belongs to other GPUs than a moment ago");
  }
  SECTION("its node is gone") {
    grace.tree.Remove("dev/egm4");
    CHECK(grace.Nodes(both) == "/dev/egm4: node-missing: the device node is missing");
  }
  CHECK(grace.Nodes({kGpus[1], kGpus[2]}) == "/dev/egm5 ");
}

TEST_CASE("a container that starts again without the region that its answer named is refused",
          "[deviceplugin]") {
  Grace grace;
  const IndexedOffer indexed(grace.offer);
  const auto given = *FindUnits(indexed, {kGpus[0], kGpus[3]});
  auto with = given;
  std::deque<OfferedUnit> own;
  REQUIRE(AddEgmNodes(grace.tree.Open(), grace.offer, with, own).ok());
  Ledger ledger;
  REQUIRE(ledger.Take("nvidia.com/X", {with}).ok());
  CHECK(ledger.CheckUnchanged(*with[0]).ok());
  const absl::Status status = ledger.CheckUnchanged(*given[0]);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("group-changed") && Catch::Contains("(/dev/egm4 then, "));
}

std::string Prefer(const Ids& available, size_t size, const Ids& must = {},
                   const Offer& offer = GraceOffer()) {
  return absl::StrJoin(
      PreferUnits(IndexedOffer(offer), {.available = available, .must = must, .size = size}), " ");
}

TEST_CASE("the GPUs of a region are preferred together, and single ones where none is whole",
          "[deviceplugin]") {
  CHECK(Prefer(kGpus, 2) == "0008:01:00.0 0019:01:00.0");
  CHECK(Prefer(kGpus, 2, {kGpus[2]}) == "0009:01:00.0 0018:01:00.0");
  CHECK(Prefer(kGpus, 1) == "0008:01:00.0");
  // The region of the first two is broken up: what is left of it goes to who wants one.
  const Ids left = {kGpus[1], kGpus[2], kGpus[3]};
  CHECK(Prefer(left, 1) == "0019:01:00.0");
  CHECK(Prefer(left, 2) == "0009:01:00.0 0018:01:00.0");
  CHECK(Prefer(left, 3) == "0009:01:00.0 0018:01:00.0 0019:01:00.0");
}

TEST_CASE("an IOMMU group is not divided for a region", "[deviceplugin]") {
  Offer offer = GraceOffer();
  offer.units[1].group = offer.units[0].group;
  CHECK(Prefer(kGpus, 2, {}, offer) == "0008:01:00.0 0009:01:00.0");
}

}  // namespace
}  // namespace vfio_agent
