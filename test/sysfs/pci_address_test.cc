#include "sysfs/device/pci_address.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace vfio_agent {
namespace {

PciAddress At(const std::string& text) { return *PciAddress::Parse(text); }

TEST_CASE("a PCI address survives parse and print", "[sysfs]") {
  const std::string text =
      GENERATE("0000:00:00.0", "0000:3b:00.1", "ffff:ff:1f.7", "10001:80:05.0", "10000:e1:1f.7",
               "ab12cd:01:00.0", "deadbee:01:00.0", "ffffffff:ff:1f.7");
  CAPTURE(text);
  const auto address = PciAddress::Parse(text);
  REQUIRE(address.ok());
  CHECK(address->ToString() == text);
}

TEST_CASE("the parts of an address are hexadecimal numbers", "[sysfs]") {
  CHECK(At("10001:8a:1f.7") ==
        PciAddress{.domain = 0x10001, .bus = 0x8a, .device = 0x1f, .function = 7});
}

TEST_CASE("upper case is read and lower case is written", "[sysfs]") {
  CHECK(At("00AB:3B:1F.0").ToString() == "00ab:3b:1f.0");
}

TEST_CASE("leading zeros of a wide domain do not make another address", "[sysfs]") {
  CHECK(At("00000001:03:00.0") == At("0001:03:00.0"));
  CHECK(At("00000001:03:00.0").ToString() == "0001:03:00.0");
}

TEST_CASE("what is not a PCI address is refused and named", "[sysfs]") {
  const std::string text =
      GENERATE("", "foo", "3b:00.0", "000:3b:00.0", "123456789:3b:00.0", "0000:3b:00",
               "0000:3b:00.", "0000:3b:20.0", "0000:3b:00.8", "0000:3b:00.0 ", " 0000:3b:00.0",
               "0000:3g:00.0", "-000:3b:00.0", "0x00:3b:00.0", "0000:3b:00.00", "0000:3b:0.0",
               "0000:3b:000.0", "0000-3b-00.0", "0000:3b:00:0", "0000:3b:00.0/..");
  CAPTURE(text);
  const absl::Status status = PciAddress::Parse(text).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).find("'" + text + "'") != std::string::npos);
}

TEST_CASE("a text that ends inside an address is not read beyond its end", "[sysfs]") {
  const std::string whole = "0000:3b:00.0";
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(PciAddress::Parse(std::string_view(whole).substr(0, size)).ok());
  }
}

TEST_CASE("addresses are ordered as lspci lists them, domains as numbers", "[sysfs]") {
  std::vector<PciAddress> addresses = {At("10001:00:00.0"), At("2000:00:00.0"), At("0000:3b:00.1"),
                                       At("0000:3b:00.0"),  At("0000:0a:1f.7"), At("0000:3b:01.0")};
  std::ranges::sort(addresses);
  std::string order;
  for (const PciAddress& address : addresses) order += address.ToString() + " ";
  CHECK(order == "0000:0a:1f.7 0000:3b:00.0 0000:3b:00.1 0000:3b:01.0 2000:00:00.0 10001:00:00.0 ");
}

TEST_CASE("functions of one slot differ in the function number only", "[sysfs]") {
  CHECK(SameSlot(At("0000:3b:00.0"), At("0000:3b:00.7")));
  CHECK_FALSE(SameSlot(At("0000:3b:00.0"), At("0000:3b:01.0")));
  CHECK_FALSE(SameSlot(At("0000:3b:00.0"), At("0000:3c:00.0")));
  CHECK_FALSE(SameSlot(At("0000:3b:00.0"), At("0001:3b:00.0")));
}

}  // namespace
}  // namespace vfio_agent
