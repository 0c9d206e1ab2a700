#include "iommu/isolation/isolation.h"

#include <catch2/catch.hpp>

#include "iommu/isolation/acs_quirks.h"
#include "test/iommu/hardware.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

AcsState Check(const Fact<PcieType>& type, const Fact<Acs>& acs, bool multifunction = false) {
  return CheckAcs(MakeFunction(
      {.address = "0000:00:01.0", .type = type, .acs = acs, .multifunction = multifunction}));
}

Fact<Acs> Registers(uint16_t capability, uint16_t control) {
  return Fact<Acs>(Acs{.capability = capability, .control = control});
}

Fact<PcieType> Type(PcieType type) { return Fact<PcieType>(type); }

TEST_CASE("a port isolates when every service that it has and the kernel asks for is on",
          "[iommu]") {
  struct Row {
    uint16_t capability;
    uint16_t control;
    AcsVerdict verdict;
    uint16_t missing;
  };
  const auto row = GENERATE(Row{0x5f, 0x1d, AcsVerdict::kEnabled, 0},  // as the kernel sets it
                            Row{0x5f, 0x5f, AcsVerdict::kEnabled, 0},  // and more
                            Row{0x5f, 0x1c, AcsVerdict::kOff, 0x01},   // source validation
                            Row{0x5f, 0x19, AcsVerdict::kOff, 0x04},   // request redirect
                            Row{0x5f, 0x15, AcsVerdict::kOff, 0x08},   // completion redirect
                            Row{0x5f, 0x0d, AcsVerdict::kOff, 0x10},   // upstream forwarding
                            Row{0x5f, 0x00, AcsVerdict::kOff, 0x1d},   // all of them
                            Row{0x1c, 0x1c, AcsVerdict::kEnabled, 0},  // lacks one: hard-wired
                            Row{0x00, 0x00, AcsVerdict::kEnabled, 0},  // lacks all
                            Row{0x01, 0x00, AcsVerdict::kOff, 0x01});
  CAPTURE(row.capability, row.control);
  for (const Fact<PcieType>& port : {RootPort(), Downstream()}) {
    CHECK(Check(port, Registers(row.capability, row.control)) ==
          AcsState{.verdict = row.verdict, .missing = row.missing});
  }
}

TEST_CASE("a root or downstream port without the capability isolates nothing", "[iommu]") {
  const AcsState none{.verdict = AcsVerdict::kNoAcs, .missing = kRequiredAcs};
  CHECK(Check(RootPort(), Fact<Acs>::Absent()) == none);
  CHECK(Check(Downstream(), Fact<Acs>::Absent()) == none);
  CHECK_FALSE(none.Isolates());
}

TEST_CASE("endpoints and upstream ports need ACS only beside other functions", "[iommu]") {
  const auto type = GENERATE(PcieType::kEndpoint, PcieType::kLegacyEndpoint, PcieType::kUpstream,
                             PcieType::kRootComplexEndpoint);
  CAPTURE(static_cast<int>(type));
  CHECK(Check(Type(type), Fact<Acs>::Absent(), false).verdict == AcsVerdict::kNotNeeded);
  CHECK(Check(Type(type), Fact<Acs>::Unknown(EACCES), false).verdict == AcsVerdict::kNotNeeded);
  CHECK(Check(Type(type), Fact<Acs>::Absent(), true).verdict == AcsVerdict::kNoAcs);
  CHECK(Check(Type(type), SwitchedOff(), true).verdict == AcsVerdict::kOff);
  CHECK(Check(Type(type), Isolating(), true).verdict == AcsVerdict::kEnabled);
}

TEST_CASE("conventional PCI and its bridges never isolate, whatever their registers say",
          "[iommu]") {
  const auto type =
      GENERATE(Fact<PcieType>::Absent(), Type(PcieType::kPcieToPci), Type(PcieType::kPciToPcie),
               Type(PcieType::kRootComplexEventCollector));
  CHECK(Check(type, Isolating()).verdict == AcsVerdict::kNoAcs);
}

TEST_CASE("what could not be read is unknown: neither isolation nor the lack of it", "[iommu]") {
  for (const AcsState& state :
       {Check(Fact<PcieType>::Unknown(EACCES), Fact<Acs>::Absent()),
        Check(RootPort(), Fact<Acs>::Unknown(EACCES)),
        Check(Type(PcieType::kEndpoint), Fact<Acs>::Unknown(EACCES), true)}) {
    CHECK(state.verdict == AcsVerdict::kUnknown);
    CHECK_FALSE(state.known());
    CHECK_FALSE(state.Isolates());
  }
}

TEST_CASE("the kernel vouches for some devices without usable registers", "[iommu]") {
  struct Row {
    const char* id;
    PcieType type;
    bool vouched;
  };
  const auto row = GENERATE(
      Row{"8086:a110", PcieType::kRootPort, true}, Row{"8086:a11f", PcieType::kRootPort, true},
      Row{"8086:a120", PcieType::kRootPort, false}, Row{"8086:a110", PcieType::kEndpoint, false},
      Row{"8086:1521", PcieType::kEndpoint, true}, Row{"8086:1521", PcieType::kRootPort, false},
      Row{"8086:abcd", PcieType::kRootComplexEndpoint, true},
      Row{"1022:abcd", PcieType::kRootComplexEndpoint, false},
      Row{"1def:e005", PcieType::kRootPort, true}, Row{"10de:2330", PcieType::kEndpoint, false});
  CAPTURE(row.id, static_cast<int>(row.type));
  PciDevice device = Function("0000:00:01.0", 1, "", row.id, 0);
  device.config.pcie_type = Type(row.type);
  device.config.is_bridge = row.type == PcieType::kRootPort;
  device.config.multifunction = true;
  CHECK(KernelVouchesFor(device) == row.vouched);
  CHECK((CheckAcs(device).verdict == AcsVerdict::kQuirk) == row.vouched);
}

TEST_CASE("the bits are spelled as lspci spells them", "[iommu]") {
  CHECK(AcsBits(0x7f) ==
        "SrcValid TransBlk ReqRedir CmpltRedir UpstreamFwd EgressCtrl DirectTrans");
  CHECK(AcsBits(kRequiredAcs) == "SrcValid ReqRedir CmpltRedir UpstreamFwd");
  CHECK(AcsBits(0).empty());
}

TEST_CASE("a port's state is one sentence that names the missing bits", "[iommu]") {
  CHECK(Describe({.verdict = AcsVerdict::kOff, .missing = 0x0c}) ==
        "ACS switched off: ReqRedir CmpltRedir missing");
  CHECK(Describe({.verdict = AcsVerdict::kNoAcs, .missing = 0x1d}) ==
        "no ACS capability: SrcValid ReqRedir CmpltRedir UpstreamFwd missing");
  CHECK(Describe({}) == "ACS unknown: config space not readable");
  CHECK(Describe({.verdict = AcsVerdict::kEnabled}) == "ACS on: isolates");
  CHECK(Describe({.verdict = AcsVerdict::kNotNeeded}) == "needs no ACS");
  CHECK(Describe({.verdict = AcsVerdict::kQuirk}) == "isolates by a quirk that the kernel knows");
}

}  // namespace
}  // namespace vfio_agent
