// What a release takes for the agent's own.
#include <catch2/catch.hpp>
#include <utility>

#include "iommu/plan/release.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kAudio[] = "0000:3b:00.1";

NodeFacts Bound() { return Node({Gpu(kGpu, 17, "vfio-pci"), Audio(kAudio, 17, "vfio-pci")}); }

TEST_CASE("of a group that is the agent's in part only its own goes back, unless all is named",
          "[iommu]") {
  const Custody custody = Asked(TakenFrom({{kAudio, "snd_hda_intel"}}));
  const auto own = PlanRelease(Bound(), custody, {At(kAudio)});
  REQUIRE(own.size() == 1);
  CHECK(own[0].members == std::vector<PciAddress>{At(kAudio)});
  CHECK(PlanRelease(Bound(), custody, {At(kAudio), At(kGpu)}).at(0).members.size() == 2);
}

TEST_CASE("what the journal has of a card is not believed of another one in its place", "[iommu]") {
  Records records = TakenFrom({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}});
  NodeFacts facts = Bound();
  for (PciDevice& device : facts.devices) {
    records.at(device.address).vendor = device.vendor;
    records.at(device.address).device = device.device;
  }
  DisownReplaced(facts, records);
  CHECK(records.at(At(kGpu)).this_boot);
  const uint16_t vendor = std::exchange(facts.devices[0].vendor, 0);  // cannot be read just now
  DisownReplaced(facts, records);
  CHECK(records.at(At(kGpu)).this_boot);
  facts.devices[0].vendor = vendor;
  ++facts.devices[0].device;
  DisownReplaced(facts, records);
  CHECK_FALSE(records.at(At(kGpu)).this_boot);
  CHECK(records.at(At(kAudio)).this_boot);
}

}  // namespace
}  // namespace vfio_agent
