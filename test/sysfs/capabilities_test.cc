#include "sysfs/device/capabilities.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "test/support/config_bytes.h"

namespace vfio_agent {
namespace {

Capabilities Decode(const ConfigBytes& config, size_t size_bytes = 4096, bool is_vf = false) {
  return DecodeConfig(config.bytes(), size_bytes, is_vf);
}

TEST_CASE("each PCI Express device and port type is told apart", "[sysfs]") {
  const auto type = GENERATE(PcieType::kEndpoint, PcieType::kLegacyEndpoint, PcieType::kRootPort,
                             PcieType::kUpstream, PcieType::kDownstream, PcieType::kPcieToPci,
                             PcieType::kPciToPcie, PcieType::kRootComplexEndpoint,
                             PcieType::kRootComplexEventCollector);
  CAPTURE(static_cast<int>(type));
  CHECK(Decode(ConfigBytes().Pcie(type)).pcie_type == Fact<PcieType>(type));
}

TEST_CASE("the PCI Express capability is found behind another one", "[sysfs]") {
  const auto config = ConfigBytes().AdvancedFeatures(false).Pcie(PcieType::kDownstream);
  CHECK(Decode(config).pcie_type.is(PcieType::kDownstream));
}

TEST_CASE("a capability list that the status register denies is not walked", "[sysfs]") {
  const auto config = ConfigBytes().Pcie(PcieType::kEndpoint).Put16(0x06, 0);
  CHECK(Decode(config).pcie_type.absent());
}

TEST_CASE("ACS is decoded as what the function can do and what is on", "[sysfs]") {
  const auto [capability, control] = GENERATE(
      table<uint16_t, uint16_t>({{0x5f, 0x1d}, {0x5f, 0}, {0, 0}, {0x1d, 0x1d}, {0x7f, 0x7f}}));
  CAPTURE(capability, control);
  const Acs acs{.capability = capability, .control = control};
  CHECK(Decode(PortConfig(PcieType::kRootPort, acs)).acs == Fact<Acs>(acs));
}

TEST_CASE("ACS that is first in the extended space is found too", "[sysfs]") {
  const auto config =
      ConfigBytes().Pcie(PcieType::kRootPort).Put32(0x100, 0x1000d).Put16(0x104, 0x1f);
  CHECK(Decode(config).acs == Fact<Acs>(Acs{.capability = 0x1f}));
}

TEST_CASE("an extended space without ACS says that there is none", "[sysfs]") {
  CHECK(Decode(EndpointConfig()).acs.absent());  // an empty list
  CHECK(Decode(ConfigBytes().Pcie(PcieType::kEndpoint).Put32(0x100, 0x10001)).acs.absent());
  CHECK(Decode(ConfigBytes().Pcie(PcieType::kEndpoint).Put32(0x100, 0xffffffff)).acs.absent());
}

TEST_CASE("function-level reset is told by PCI Express or by Advanced Features", "[sysfs]") {
  CHECK(Decode(ConfigBytes().Pcie(PcieType::kEndpoint, true)).flr == Fact<bool>(true));
  CHECK(Decode(ConfigBytes().Pcie(PcieType::kEndpoint, false)).flr == Fact<bool>(false));
  CHECK(Decode(ConfigBytes(256).AdvancedFeatures(true), 256).flr == Fact<bool>(true));
  CHECK(Decode(ConfigBytes(256).AdvancedFeatures(false), 256).flr == Fact<bool>(false));
  CHECK(Decode(ConfigBytes(256), 256).flr == Fact<bool>(false));
}

TEST_CASE("the header type tells bridges and multifunction devices", "[sysfs]") {
  struct Row {
    unsigned header;
    bool bridge;
    bool multifunction;
  };
  const auto row = GENERATE(Row{0x00, false, false}, Row{0x80, false, true}, Row{0x01, true, false},
                            Row{0x81, true, true}, Row{0x02, true, false}, Row{0x03, false, false});
  CAPTURE(row.header);
  const Capabilities decoded = Decode(ConfigBytes().Put8(0x0e, row.header));
  CHECK(decoded.is_bridge == row.bridge);
  CHECK(decoded.multifunction == row.multifunction);
}

TEST_CASE("64 readable bytes leave the capabilities unknown, not absent", "[sysfs]") {
  const Capabilities decoded = Decode(PortConfig(PcieType::kRootPort, kAcsOn).Cut(64), 4096);
  CHECK(decoded.pcie_type == Fact<PcieType>::Unknown(EACCES));
  CHECK(decoded.acs == Fact<Acs>::Unknown(EACCES));
  CHECK(decoded.flr == Fact<bool>::Unknown(EACCES));
  CHECK(decoded.is_bridge);  // the header is among the 64 bytes
  CHECK(decoded.readable_bytes == 64);
  CHECK(decoded.size_bytes == 4096);
}

TEST_CASE("256 readable bytes of 4096 tell the type and leave ACS unknown", "[sysfs]") {
  const Capabilities decoded = Decode(PortConfig(PcieType::kRootPort, kAcsOn).Cut(256), 4096);
  CHECK(decoded.pcie_type.is(PcieType::kRootPort));
  CHECK(decoded.acs.unknown());
}

TEST_CASE("a PCI Express function whose kernel shows 256 bytes has unknown ACS", "[sysfs]") {
  CHECK(Decode(PortConfig(PcieType::kRootPort).Cut(256), 256).acs.unknown());
}

TEST_CASE("conventional PCI of 256 bytes has no type and no ACS", "[sysfs]") {
  const size_t readable = GENERATE(as<size_t>{}, 256, 64);
  CAPTURE(readable);
  const Capabilities decoded = Decode(ConventionalConfig().Cut(readable), 256);
  CHECK(decoded.pcie_type.absent());
  CHECK(decoded.acs.absent());
}

TEST_CASE("fewer bytes than a header tell nothing", "[sysfs]") {
  const size_t readable = GENERATE(as<size_t>{}, 0, 1, 63);
  CAPTURE(readable);
  const Capabilities decoded = Decode(PortConfig(PcieType::kRootPort, kAcsOn).Cut(readable));
  CHECK(decoded.pcie_type.unknown());
  CHECK(decoded.acs.unknown());
  CHECK(decoded.flr.unknown());
  CHECK_FALSE(decoded.is_bridge);
  CHECK_FALSE(decoded.all_ones);
}

TEST_CASE("a device that reads all ones does not answer and nothing is believed", "[sysfs]") {
  const size_t readable = GENERATE(as<size_t>{}, 64, 256, 4096);
  CAPTURE(readable);
  const Capabilities decoded = Decode(DeadConfig().Cut(readable));
  CHECK(decoded.all_ones);
  CHECK(decoded.pcie_type.unknown());
  CHECK(decoded.acs.unknown());
  CHECK_FALSE(decoded.multifunction);
}

TEST_CASE("one byte that is not ff is an answer", "[sysfs]") {
  CHECK_FALSE(Decode(DeadConfig().Put8(4095, 0)).all_ones);
}

TEST_CASE("a VF's first four bytes read ff and are no sign of a dead device", "[sysfs]") {
  auto config = EndpointConfig().Put32(0, 0xffffffff);
  CHECK_FALSE(Decode(config, 4096, true).all_ones);
  CHECK(Decode(config, 4096, true).pcie_type.is(PcieType::kEndpoint));
  CHECK(Decode(DeadConfig().Put32(0, 0), 4096, true).all_ones);
  CHECK(Decode(DeadConfig(), 4096, true).all_ones);
}

TEST_CASE("a VF is never multifunction: the kernel clears it", "[sysfs]") {
  CHECK_FALSE(Decode(EndpointConfig(true), 4096, true).multifunction);
}

// Broken devices. What matters besides the answer is that each of these ends.
TEST_CASE("a standard capability list that loops leaves the type unknown", "[sysfs]") {
  auto config = ConfigBytes().AdvancedFeatures(true);
  const unsigned back_to = GENERATE(0x40u, 0x44u);
  config.Put8(0x41, back_to).Put8(0x45, 0x40);
  CAPTURE(back_to);
  CHECK(Decode(config).pcie_type.unknown());
}

TEST_CASE("a capability pointer out of range leaves the type unknown", "[sysfs]") {
  const unsigned pointer = GENERATE(0x04u, 0x3cu);
  CAPTURE(pointer);
  auto config = ConfigBytes().AdvancedFeatures(true).Put8(0x41, pointer);
  CHECK(Decode(config).pcie_type.unknown());
  CHECK(Decode(config.Put8(0x34, pointer)).pcie_type.unknown());
}

TEST_CASE("the reserved low bits of a capability pointer are ignored", "[sysfs]") {
  CHECK(Decode(EndpointConfig().Put8(0x34, 0x43)).pcie_type.is(PcieType::kEndpoint));
}

TEST_CASE("a capability at the very end of the space is not read beyond it", "[sysfs]") {
  auto config = ConfigBytes(256).Put16(0x06, 0x10).Put8(0x34, 0xfc).Put8(0xfc, 0x10);
  CHECK(Decode(config.Put16(0xfe, 0x02), 256).pcie_type.is(PcieType::kEndpoint));
  CHECK(Decode(config.Put8(0xfc, 0x13).Put8(0xff, 0x02), 256).flr == Fact<bool>(true));
}

TEST_CASE("a PCI Express capability without room for its registers tells of no reset", "[sysfs]") {
  const size_t size = GENERATE(size_t{256}, size_t{4096});
  CAPTURE(size);
  auto config = ConfigBytes(size).Put16(0x06, 0x10).Put8(0x34, 0xfc).Put8(0xfc, 0x10);
  if (size > 256) config.Put32(0x100, 1u << 28);
  CHECK(Decode(config, size).flr.unknown());
}

TEST_CASE("an extended capability list that loops leaves ACS unknown", "[sysfs]") {
  const unsigned next = GENERATE(0x100u, 0x148u);
  CAPTURE(next);
  auto config = EndpointConfig().Put32(0x100, next << 20 | 0x10001);
  config.Put32(0x148, 0x100u << 20 | 0x10003);
  CHECK(Decode(config).acs.unknown());
}

TEST_CASE("an extended pointer out of range leaves ACS unknown", "[sysfs]") {
  const unsigned next = GENERATE(0x040u, 0x0fcu, 0xffcu);
  CAPTURE(next);
  CHECK(Decode(EndpointConfig().Put32(0x100, next << 20 | 0x10001)).acs.unknown());
}

}  // namespace
}  // namespace vfio_agent
