#include "iommu/distance/nvlink.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

PciDevice Nvswitch(std::string_view address, const std::string& id) {
  return Function(address, 1, "", id, 0x068000);
}

std::string Meaning(const NvlinkBoard& board) {
  std::string text;
  for (const std::string& line : WhatItMeans(board)) text += line + "\n";
  return text;
}

TEST_CASE("a board is recognised by its modules and its NVSwitches", "[topology]") {
  struct Row {
    const char* gpu;
    const char* nvswitch;
    const char* family;
  };
  const auto row = GENERATE(Row{"10de:1db8", "10de:1ac2", "V100 SXM3"},
                            Row{"10de:20b2", "10de:1af1", "A100/A800 SXM4"},
                            Row{"10de:2330", "10de:22a3", "H100/H200/H800/H20 SXM"},
                            Row{"10de:2335", "10de:22a3", "H100/H200/H800/H20 SXM"});
  CAPTURE(row.gpu);
  const NodeFacts facts = Node({Function("0000:1b:00.0", 1, "", row.gpu, 0x030200),
                                Function("0000:1c:00.0", 2, "", row.gpu, 0x030200),
                                Nvswitch("0000:05:00.0", row.nvswitch)});
  const auto boards = FindNvlinkBoards(facts);
  REQUIRE(boards.size() == 1);
  CHECK(boards.front().family == row.family);
  CHECK(boards.front().gpus == std::vector<PciAddress>{At("0000:1b:00.0"), At("0000:1c:00.0")});
  CHECK(boards.front().switches == std::vector<PciAddress>{At("0000:05:00.0")});
  CHECK_THAT(Meaning(boards.front()), Catch::Contains("all 2 GPUs and all 1 NVSwitch together") &&
                                          Catch::Contains("shared NVSwitch mode") &&
                                          Catch::Contains("802"));
}

TEST_CASE("a switch of another generation is not on the board", "[topology]") {
  const NodeFacts facts = Node({Function("0000:1b:00.0", 1, "", "10de:2330", 0x030200),
                                Nvswitch("0000:05:00.0", "10de:1af1")});
  const auto boards = FindNvlinkBoards(facts);
  REQUIRE(boards.size() == 2);
  CHECK(boards[0].gpus.empty());
  CHECK(boards[1].switches.empty());
  // Modules without the switches that they need: this is somebody's guest.
  CHECK_THAT(Meaning(boards[1]), Catch::Contains("not on this node's PCI"));
}

TEST_CASE("a B200's NVSwitches are no PCI functions, and P100 modules have none", "[topology]") {
  const NodeFacts facts = Node({Function("0000:1b:00.0", 1, "", "10de:2901", 0x030200),
                                Function("0000:1c:00.0", 2, "", "10de:15f9", 0x030200)});
  const auto boards = FindNvlinkBoards(facts);
  REQUIRE(boards.size() == 2);
  CHECK_THAT(Meaning(boards[0]), Catch::Contains("directly"));
  CHECK_THAT(Meaning(boards[1]), Catch::Contains("SW_MNG"));
}

TEST_CASE("V100 modules that are joined without switches", "[topology]") {
  const char* const gpu = GENERATE("10de:1db1", "10de:1db5", "10de:1df5");
  CAPTURE(gpu);
  const auto boards = FindNvlinkBoards(Node({Function("0000:1b:00.0", 1, "", gpu, 0x030200)}));
  REQUIRE(boards.size() == 1);
  CHECK(boards.front().family == "V100 SXM2");
}

TEST_CASE("a PCIe card is no module, and no VF is either", "[topology]") {
  CHECK_FALSE(IsNvlinkModule(Function("0000:1b:00.0", 1, "", "10de:2331", 0x030200)));
  CHECK_FALSE(IsNvlinkModule(Function("0000:1b:00.0", 1, "", "1002:2330", 0x030200)));
  PciDevice vf = Vf("0000:1b:00.4", 3, "0000:1b:00.0");
  vf.device = 0x2330;
  CHECK_FALSE(IsNvlinkModule(vf));
  CHECK(IsNvlinkModule(Function("0000:1b:00.0", 1, "", "10de:2330", 0x030200)));
}

}  // namespace
}  // namespace vfio_agent
