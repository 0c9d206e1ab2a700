// Config space: what the program decodes stays as it is, everything else is gone.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/snapshot/mask_text.h"
#include "sysfs/device/capabilities.h"

namespace vfio_agent {
namespace {

std::string MaskedConfig(std::string_view bytes) {
  Masker masker;
  return MaskConfigSpace(bytes, masker);
}

Capabilities Decode(const std::string& bytes, bool is_vf) {
  return DecodeConfig(std::as_bytes(std::span(bytes)), bytes.size(), is_vf);
}

void Put(std::string& bytes, size_t at, std::initializer_list<int> values) {
  for (const int value : values) bytes[at++] = static_cast<char>(value);
}

// A PCI Express endpoint with a serial number, product data, something of the vendor's, and ACS.
std::string Endpoint() {
  std::string bytes(4096, '\x5a');  // what no capability claims is anything
  Put(bytes, 0x00, {0xde, 0x10, 0x30, 0x23, 0x07, 0x04, 0x10, 0x00});
  Put(bytes, 0x0e, {0x00});
  Put(bytes, 0x34, {0x40});
  Put(bytes, 0x40, {0x03, 0x60, 0x00, 0x80, 'S', 'N', '4', '2'});  // VPD
  Put(bytes, 0x60, {0x09, 0x78, 0x18, 0x00, 'k', 'e', 'y', '!'});  // the vendor's
  Put(bytes, 0x78, {0x10, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x10});
  Put(bytes, 0x100, {0x03, 0x00, 0x01, 0x15, 1, 2, 3, 4, 5, 6, 7, 8});  // serial number
  Put(bytes, 0x150, {0x0d, 0x00, 0x01, 0x00, 0x5f, 0x00, 0x1d, 0x00});  // ACS
  return bytes;
}

TEST_CASE("serial number, product data and the vendor's own registers are zero", "[snapshot]") {
  const std::string masked = MaskedConfig(Endpoint());
  REQUIRE(masked.size() == 4096);
  CHECK(masked.substr(0x104, 8) == std::string(8, '\0'));
  CHECK(masked.substr(0x44, 4) == std::string(4, '\0'));
  CHECK(masked.substr(0x64, 4) == std::string(4, '\0'));
  CHECK(masked.substr(0x160) == std::string(4096 - 0x160, '\0'));
  CHECK(masked.substr(0, 0x40) == Endpoint().substr(0, 0x40));
}

TEST_CASE("what the program decodes stays", "[snapshot]") {
  const std::string masked = MaskedConfig(Endpoint());
  const Capabilities before = Decode(Endpoint(), false), after = Decode(masked, false);
  CHECK(after == before);
  CHECK(after.flr.is(true));
  CHECK(after.acs.known());
  CHECK(after.acs.value().control == 0x1d);
  CHECK(MaskedConfig(masked) == masked);
}

TEST_CASE("a device that does not answer and one that shows its header alone stay so",
          "[snapshot]") {
  const std::string dead(4096, '\xff');
  CHECK(MaskedConfig(dead) == dead);
  const std::string header = Endpoint().substr(0, 0x40);
  CHECK(MaskedConfig(header) == header);
  CHECK(MaskedConfig("x") == "x");
}

TEST_CASE("broken lists of capabilities are as broken afterwards", "[snapshot]") {
  size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(SEEDS) + "/config_space")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    CAPTURE(entry.path().filename().string());
    // The seeds' first bytes say how they are to be read; here any cut will do.
    for (const size_t skip : {0U, 1U, 2U}) {
      if (bytes.size() < skip) continue;
      const std::string image = bytes.substr(skip);
      for (const bool is_vf : {false, true}) {
        CHECK(Decode(MaskedConfig(image), is_vf) == Decode(image, is_vf));
      }
      ++seen;
    }
  }
  CHECK(seen > 30);
}

}  // namespace
}  // namespace vfio_agent
