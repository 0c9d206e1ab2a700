#include "sysfs/use/display_use.h"

#include <catch2/catch.hpp>

#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

constexpr char kInBar[] =
    "00000000-00000fff : Reserved\n"
    "d0000000-dfffffff : PCI Bus 0000:65\n"
    "  d0000000-d0ffffff : 0000:65:00.0\n"
    "    d0000000-d02fffff : efifb\n";

struct Card : UseTree {
  Card() {
    Below(kCard, "resource",
          "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
          "0x0000000000000000 0x0000000000000000 0x0000000000000000");
    for (const char* other : {kNic, kDisk}) Below(other, "resource", "");
  }
  // The frame buffer console draws into fb0.
  Card& Console(const std::string& bound) {
    Write("sys/class/vtconsole/vtcon0/name", "(S) dummy device\n");
    Write("sys/class/vtconsole/vtcon0/bind", "1\n");
    Write("sys/class/vtconsole/vtcon1/name", "(M) frame buffer device\n");
    Write("sys/class/vtconsole/vtcon1/bind", bound + "\n");
    return *this;
  }
};

// What is said of the boot console's memory on `address`, from the whole picture.
FrameBuffer FrameBufferOf(const Card& card, const char* address) {
  const auto& found = card.Facts().frame_buffers;
  const auto entry = found.find(*PciAddress::Parse(address));
  return entry == found.end() ? FrameBuffer{} : entry->second;
}

TEST_CASE("the boot console's frame buffer in a display adapter's memory is seen", "[sysfs]") {
  Card card;
  card.Write("proc/iomem", kInBar);
  CHECK(FrameBufferOf(card, kCard).text ==
        "has its memory d0000000-d02fffff held by efifb, the boot console's frame buffer");
  CHECK(FrameBufferOf(card, kCard).remedy.find("video=efifb:off") != std::string::npos);
  CHECK(FrameBufferOf(card, kDisk).text.empty());
}

TEST_CASE("POWR-03: the frame buffer hinders a function without a driver as well", "[sysfs]") {
  Card card;
  card.Write("proc/iomem", kInBar).Remove(card.Real(kCard) + "/driver");
  CHECK(FrameBufferOf(card, kCard).text.starts_with("has its memory"));
}

TEST_CASE("a claim beside the function's memory is no use", "[sysfs]") {
  Card card;
  card.Write("proc/iomem", "cf000000-cfffffff : efifb\nd1000000-d1ffffff : simpledrm\n");
  CHECK(FrameBufferOf(card, kCard).text.empty());
  card.Write("proc/iomem", "cf000000-d0000000 : BOOTFB\n");
  CHECK(FrameBufferOf(card, kCard)
            .text.starts_with("has its memory cf000000-d0000000 held by BOOTFB"));
  card.Write("proc/iomem", "d0ffffff-d1000000 : BOOTFB\n");
  CHECK(FrameBufferOf(card, kCard).text.starts_with("has its memory d0ffffff"));
}

TEST_CASE("addresses that the kernel hides claim nothing", "[sysfs]") {
  CHECK(ParseIomem("00000000-00000000 : efifb\n").empty());
}

TEST_CASE("every driver of a boot frame buffer is known, and others are not", "[sysfs]") {
  for (const char* owner : {"efifb", "vesafb", "simplefb", "simple-framebuffer", "simpledrm",
                            "efidrm", "vesadrm", "BOOTFB"}) {
    CAPTURE(owner);
    const auto claims = ParseIomem(absl::StrFormat("    e0000000-e02fffff : %s\n", owner));
    CHECK(claims ==
          std::vector<MemoryClaim>{{.first = 0xe0000000, .last = 0xe02fffff, .owner = owner}});
  }
  CHECK(ParseIomem("e0000000-e02fffff : nvidia\ne0000000-e02fffff : efifb2\n").empty());
}

TEST_CASE("hostile memory maps give no claim", "[sysfs]") {
  const std::string text = GENERATE(
      as<std::string>{}, "", " : efifb", "e0 : efifb", "-e0 : efifb", "e0- : efifb",
      "e1-e0 : efifb", "xx-yy : efifb", "11111111111111111-22222222222222222 : efifb",
      std::string(100'000, ' '), std::string(100'000, ':'), std::string("\0-\xff : efifb\n", 12));
  CAPTURE(text);
  CHECK(ParseIomem(text).empty());
}

TEST_CASE("the frame buffer with the console is a use", "[sysfs]") {
  Card card;
  card.Console("1").Below(kCard, "graphics/fb0/name", "nouveau");
  CHECK(card.Uses(kCard) == "display: carries fb0, which shows the console");
  CHECK(card.Remedy(kCard).ends_with("echo 0 > /sys/class/vtconsole/vtcon1/bind"));
}

TEST_CASE("a frame buffer without the console is no use", "[sysfs]") {
  Card card;
  SECTION("another one has it") { card.Console("1").Below(kCard, "graphics/fb1/name", "nouveau"); }
  SECTION("the console is unbound") {
    card.Console("0").Below(kCard, "graphics/fb0/name", "nouveau");
  }
  SECTION("there is no console") { card.Below(kCard, "graphics/fb0/name", "nouveau"); }
  CHECK(card.Uses(kCard).empty());
}

}  // namespace
}  // namespace vfio_agent
