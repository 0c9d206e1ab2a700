// What becomes of recorded boards: which devices are one unit.
#include "absl/strings/str_join.h"
#include "test/agent/node.h"

namespace vfio_agent::kubevirt {
namespace {

using Ids = std::vector<std::string>;

// The units of the one resource as `plan` has them: addresses joined, bus numbers only; and the
// plan's refusals that have to do with bundles.
struct Planned {
  Ids units;
  std::string refusals;
};
Planned PlanUnits(const std::string& machine, const std::string& configuration) {
  const Node node(machine);
  const std::string file = node.dir().Write("config.yaml", configuration);
  const nlohmann::json plan = node.RunJson({"plan", "--config", file});
  Planned planned;
  for (const auto& unit : plan.at("resources").at(0).at("units")) {
    Ids buses;
    for (const auto& address : unit.at("addresses")) {
      buses.push_back(address.get<std::string>().substr(5, 2));
    }
    planned.units.push_back(absl::StrJoin(buses, " "));
  }
  for (const auto& refusal : plan.at("refusals")) {
    if (refusal.at("code") == "group-split") {
      planned.refusals += refusal.at("text").get<std::string>() + "\n";
    }
  }
  return planned;
}

// Recorded without an IOMMU, so all is refused for that; what would be a unit is told.
TEST_CASE("on a recorded MI300X machine each GPU is with the adapter of its switch", "[node]") {
  const Planned planned = PlanUnits("mi300x-8gpu-cx7-switches", R"(
resources:
  - name: amd.com/pair
    bundle:
      members:
        - select: [{vendor: "1002", class: "12"}]
        - {select: [{vendor: "15b3", class: "0207"}], near: switch}
)");
  CHECK(planned.units ==
        Ids{"0c 07", "15 10", "1e 19", "69 64", "9f 9a", "af aa", "bf ba", "df da"});
  CHECK(planned.refusals.empty());
}

std::string Dgx2(const std::string& count) {
  return "resources:\n"
         "  - name: nvidia.com/board\n"
         "    bundle:\n"
         "      members:\n"
         "        - {select: [{vendor: \"10de\", class: \"0302\"}], count: " +
         count +
         "}\n"
         "        - {select: [{vendor: \"10de\", class: \"0680\"}], count: all}\n";
}

TEST_CASE("on a recorded DGX-2 each board is one unit with its own NVSwitches", "[node]") {
  const Planned planned = PlanUnits("dgx2-16x-v100-plx-nvswitch", Dgx2("8"));
  CHECK(planned.units ==
        Ids{"34 36 39 3b 57 59 5c 5e 61 62 63 65 67", "b7 b9 bc be e0 e2 e5 e7 c1 c2 c3 c5 c6 c7"});
  // One NVSwitch of the first board answered with nothing when the machine was recorded.
  CHECK_THAT(planned.refusals, Catch::Contains("0000:34:00.0 of nvidia.com/board is not whole: 5 "
                                               "of 6 NVSwitches"));
  CHECK_THAT(planned.refusals, !Catch::Contains("0000:b7:00.0"));
}

TEST_CASE("half of a DGX-2's board is refused", "[node]") {
  const std::string refusals = PlanUnits("dgx2-16x-v100-plx-nvswitch", Dgx2("4")).refusals;
  CHECK_THAT(refusals, Catch::Contains(
                           "a part of a board: all 6 of 6 NVSwitches, and another unit has none"));
  CHECK_THAT(refusals, Catch::Contains("0 of 6 NVSwitches"));
}

}  // namespace
}  // namespace vfio_agent::kubevirt
