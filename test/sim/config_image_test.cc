#include "test/sim/config_image.h"

#include <cstdint>
#include <map>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

uint32_t Word(const std::string& image, size_t at, int bytes) {
  uint32_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(image.at(at + static_cast<size_t>(i)));
  }
  return value;
}

// Id to offset, by following the lists as any reader does.
std::map<uint32_t, size_t> Capabilities(const std::string& image) {
  std::map<uint32_t, size_t> found;
  for (size_t at = Word(image, 0x34, 1); at != 0; at = Word(image, at + 1, 1)) {
    found[Word(image, at, 1)] = at;
  }
  return found;
}

std::map<uint32_t, size_t> ExtendedCapabilities(const std::string& image) {
  std::map<uint32_t, size_t> found;
  for (size_t at = 0x100; at != 0; at = Word(image, at, 4) >> 20) {
    found[Word(image, at, 2)] = at;
  }
  return found;
}

uint32_t PortCode(const std::string& image) {
  return Word(image, Capabilities(image).at(0x10) + 2, 2) >> 4 & 0xf;
}

// A switch below a root port, a GPU with audio below it, and a bridge to conventional PCI.
constexpr char kChain[] = R"(
devices:
- {address: "0000:00:01.0", vendor: "8086", device: "352a", class: "060400", acs: {cap: "5f", ctl: "1d"}}
- {address: "0000:01:00.0", vendor: "1000", device: "c030", class: "060400", parent: "0000:00:01.0"}
- {address: "0000:02:00.0", vendor: "1000", device: "c030", class: "060400", parent: "0000:01:00.0"}
- {address: "0000:03:00.0", vendor: "10de", device: "2330", class: "030200", revision: "a1", parent: "0000:02:00.0", reset_method: "flr bus", sriov_totalvfs: 8}
- {address: "0000:03:00.1", vendor: "10de", device: "22ba", class: "040300", parent: "0000:02:00.0"}
- {address: "0000:00:1c.0", vendor: "8086", device: "1bc0", class: "060400"}
- {address: "0000:04:00.0", vendor: "1a03", device: "1150", class: "060400", parent: "0000:00:1c.0"}
- {address: "0000:05:00.0", vendor: "1a03", device: "2000", class: "030000", parent: "0000:04:00.0"}
- {address: "0000:00:1f.0", vendor: "8086", device: "1b81", class: "060100", acs: null}
- {address: "0000:00:1e.0", vendor: "8086", device: "1234", class: "088000", acs: null}
)";

std::string ConfigOf(Kernel& kernel, const std::string& address) {
  return ReadText(kernel, DevicePath(address) + "/config");
}

TEST_CASE("the image starts with the ids, the class and the header type", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  const std::string gpu = ConfigOf(*kernel, "0000:03:00.0");
  REQUIRE(gpu.size() == 4096);
  CHECK(Word(gpu, 0, 4) == 0x233010de);
  CHECK(Word(gpu, 8, 4) == 0x030200a1);
  CHECK(Word(gpu, 0x0e, 1) == 0x80);  // several functions in the slot
  CHECK(Word(ConfigOf(*kernel, "0000:02:00.0"), 0x0e, 1) == 0x01);
}

TEST_CASE("bridges carry the bus numbers of what is below them", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  const std::string port = ConfigOf(*kernel, "0000:00:01.0");
  CHECK(Word(port, 0x18, 1) == 0);
  CHECK(Word(port, 0x19, 1) == 1);
  CHECK(Word(port, 0x1a, 1) == 3);
}

TEST_CASE("the port type follows from the place in the chain", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  CHECK(PortCode(ConfigOf(*kernel, "0000:00:01.0")) == 4);
  CHECK(PortCode(ConfigOf(*kernel, "0000:01:00.0")) == 5);
  CHECK(PortCode(ConfigOf(*kernel, "0000:02:00.0")) == 6);
  CHECK(PortCode(ConfigOf(*kernel, "0000:03:00.0")) == 0);
  CHECK(PortCode(ConfigOf(*kernel, "0000:04:00.0")) == 7);
}

TEST_CASE("below a bridge to conventional PCI a function has 256 bytes", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  const std::string vga = ConfigOf(*kernel, "0000:05:00.0");
  CHECK(vga.size() == 256);
  CHECK_FALSE(Capabilities(vga).contains(0x10));
}

TEST_CASE("ACS reads as the machine file says and is missing where it says nothing", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  const std::string port = ConfigOf(*kernel, "0000:00:01.0");
  const auto found = ExtendedCapabilities(port);
  REQUIRE(found.contains(0x000d));
  CHECK(Word(port, found.at(0x000d) + 4, 2) == 0x5f);
  CHECK(Word(port, found.at(0x000d) + 6, 2) == 0x1d);
  CHECK_FALSE(ExtendedCapabilities(ConfigOf(*kernel, "0000:02:00.0")).contains(0x000d));
}

TEST_CASE("unknown ACS hides all but the header of a config space of full size", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  CHECK(ConfigOf(*kernel, "0000:00:1e.0").size() == 64);
  const auto node = kernel->Stat("sys/devices/pci0000:00/0000:00:1e.0/config");
  REQUIRE(node.has_value());
  CHECK(node->size == 4096);
}

TEST_CASE("FLR and SR-IOV are announced by those who have them", "[sim]") {
  const auto kernel = MakeKernel(kChain);
  const std::string gpu = ConfigOf(*kernel, "0000:03:00.0");
  const std::string audio = ConfigOf(*kernel, "0000:03:00.1");
  const auto flr = [](const std::string& image) {
    return (Word(image, Capabilities(image).at(0x10) + 4, 4) >> 28 & 1) != 0;
  };
  CHECK(flr(gpu));
  CHECK_FALSE(flr(audio));
  REQUIRE(ExtendedCapabilities(gpu).contains(0x0010));
  CHECK(Word(gpu, ExtendedCapabilities(gpu).at(0x0010) + 0x0e, 2) == 8);
  CHECK_FALSE(ExtendedCapabilities(audio).contains(0x0010));
}

TEST_CASE("a dead, a truncated and a header-only config space read as such", "[sim]") {
  const auto read = [](const std::string& kind) {
    const auto kernel = MakeKernel(
        "devices: [{address: '0000:01:00.0', vendor: '10de', device: "
        "'2204', class: '030000', config: " +
        kind + "}]\n");
    return ConfigOf(*kernel, kCard);
  };
  CHECK(read("ones") == std::string(4096, '\xff'));
  CHECK(read("1byte").size() == 1);
  CHECK(read("short").size() == 64);
}

}  // namespace
}  // namespace vfio_agent::sim
