#include "agent/origins.h"

#include <catch2/catch.hpp>

#include "test/agent/program.h"

namespace vfio_agent {
namespace {

PciDevice Device(const char* address, std::optional<std::string> driver) {
  PciDevice device{.address = *PciAddress::Parse(address)};
  device.driver = std::move(driver);
  device.group = 7;
  return device;
}

Origins ReadAll(const OriginStore& store) {
  std::vector<std::string> bad;
  const absl::StatusOr<Origins> origins = store.Read(bad);
  REQUIRE(origins.ok());
  REQUIRE(bad.empty());
  return *origins;
}

TEST_CASE("the driver that a device came from is read back by the next process", "[agent]") {
  const ScratchDir dir;
  const std::string state = dir.path() + "/below/state";
  REQUIRE(OriginStore(state, "boot-1").Note(Device("0000:01:00.0", "nvidia")).ok());
  REQUIRE(OriginStore(state, "boot-1").Note(Device("0000:01:00.1", std::nullopt)).ok());
  const Origins origins = ReadAll(OriginStore(state, "boot-1"));
  CHECK(origins.at(*PciAddress::Parse("0000:01:00.0")).driver == "nvidia");
  CHECK(origins.at(*PciAddress::Parse("0000:01:00.1")).driver.empty());
}

TEST_CASE("a device half-way through a bind keeps its record of this boot", "[agent]") {
  const ScratchDir dir;
  OriginStore store(dir.path(), "boot-1");
  REQUIRE(store.Note(Device("0000:01:00.0", "nvidia")).ok());
  REQUIRE(store.Note(Device("0000:01:00.0", std::nullopt)).ok());
  REQUIRE(store.Note(Device("0000:01:00.0", "vfio-pci")).ok());
  CHECK(ReadAll(store).begin()->second.driver == "nvidia");
}

TEST_CASE("a record of an earlier boot does not name the driver of a device without one",
          "[agent]") {
  const ScratchDir dir;
  REQUIRE(OriginStore(dir.path(), "boot-1").Note(Device("0000:01:00.0", "nvidia")).ok());
  OriginStore later(dir.path(), "boot-2");
  REQUIRE(later.Note(Device("0000:01:00.0", std::nullopt)).ok());
  CHECK(ReadAll(later).begin()->second.driver.empty());
}

TEST_CASE("a forgotten device has no record", "[agent]") {
  const ScratchDir dir;
  OriginStore store(dir.path(), "");
  REQUIRE(store.Note(Device("0000:01:00.0", "nvidia")).ok());
  REQUIRE(store.Forget(*PciAddress::Parse("0000:01:00.0")).ok());
  REQUIRE(store.Forget(*PciAddress::Parse("0000:01:00.0")).ok());
  CHECK(ReadAll(store).empty());
}

TEST_CASE("a file that is no record is told and left alone", "[agent]") {
  const ScratchDir dir;
  OriginStore store(dir.path(), "");
  REQUIRE(store.Note(Device("0000:01:00.0", "nvidia")).ok());
  dir.Write("devices/0000:02:00.0.json", "{\"schema\": \"other\"");
  std::vector<std::string> bad;
  CHECK(store.Read(bad)->size() == 1);
  REQUIRE(bad.size() == 1);
  CHECK_THAT(bad.front(), Catch::Contains("0000:02:00.0.json"));
}

TEST_CASE("no directory means no records", "[agent]") {
  CHECK(ReadAll(OriginStore("/nonexistent/state", "")).empty());
}

}  // namespace
}  // namespace vfio_agent
