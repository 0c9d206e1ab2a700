#include "iommu/policy/selector.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

std::string Why(const absl::Status& status) { return std::string(status.message()); }

TEST_CASE("each key of a selector must fit, and a selector without keys fits all", "[iommu]") {
  const PciDevice gpu = Gpu("0000:3b:00.0", 17);
  struct Row {
    Selector selector;
    bool fits;
  };
  const std::vector<Row> rows = {
      {{}, true},
      {{.address = At("0000:3b:00.0")}, true},
      {{.address = At("0001:3b:00.0")}, false},
      {{.vendor = uint16_t{0x10de}}, true},
      {{.vendor = uint16_t{0x1002}}, false},
      {{.device = uint16_t{0x2330}}, true},
      {{.device = uint16_t{0x2331}}, false},
      {{.group = 17}, true},
      {{.group = 18}, false},
      {{.driver = "nvidia"}, true},
      {{.driver = "nouveau"}, false},
      {{.vendor = uint16_t{0x10de}, .classes = {"0300", "0302"}}, true},
      {{.vendor = uint16_t{0x10de}, .classes = {"0300"}}, false},
      {{.vendor = uint16_t{0x1002}, .classes = {"0302"}}, false},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(Matches(rows[i].selector, gpu) == rows[i].fits);
  }
}

TEST_CASE("a class is a prefix of the six hexadecimal digits", "[iommu]") {
  PciDevice device = Gpu("0000:3b:00.0", 17);
  device.class_code = 0x0c0330;
  const auto [text, fits] = GENERATE(table<std::string, bool>({{"0c", true},
                                                               {"0C03", true},
                                                               {"0c0330", true},
                                                               {"0c0331", false},
                                                               {"c03", false},
                                                               {"03", false}}));
  CAPTURE(text);
  CHECK(Matches({.classes = {text}}, device) == fits);
}

TEST_CASE("a selector by group or driver does not fit a device that has none", "[iommu]") {
  const PciDevice lone = Gpu("0000:3b:00.0", -1, "");
  CHECK_FALSE(Matches({.group = 0}, lone));
  CHECK_FALSE(Matches({.driver = "nvidia"}, lone));
  CHECK_FALSE(MatchesAny({}, lone));
  CHECK(MatchesAny({{.group = 0}, {.vendor = uint16_t{0x10de}}}, lone));
}

TEST_CASE("the spellings of the command line are told apart", "[iommu]") {
  const auto target = [](std::string_view text) {
    const auto parsed = ParseTarget(text, {});
    REQUIRE(parsed.ok());
    CHECK(parsed->text == text);
    return *parsed;
  };
  CHECK(target("0000:65:00.0").selector == Selector{.address = At("0000:65:00.0")});
  CHECK(target("10001:65:00.0").selector == Selector{.address = At("10001:65:00.0")});
  CHECK(target("group:26").selector == Selector{.group = 26});
  CHECK(target("group:0").selector == Selector{.group = 0});
  CHECK(target("10de:2330").selector ==
        Selector{.vendor = uint16_t{0x10de}, .device = uint16_t{0x2330}});
  CHECK(target("10DE:").selector == Selector{.vendor = uint16_t{0x10de}});
  CHECK(target("nvidia.com/GH100").resource == "nvidia.com/GH100");
  CHECK(target("nvidia.com/GH100").selector == Selector{});
}

TEST_CASE("what is no selector is refused and said what was wanted", "[iommu]") {
  const std::string text = GENERATE("", "gpu", "group:", "group:-1", "group:2x", "10de", "10de:23",
                                    "10de:23300", "10dg:2330", "0000:65:00", ":2330", "65:00");
  CAPTURE(text);
  const absl::Status status = ParseTarget(text, {}).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(Why(status).starts_with("'" + text + "' is no selector: want an address"));
  CHECK(Why(status).ends_with("or the uuid of a mediated device that is there"));
}

TEST_CASE("a short address means the one device that ends so", "[iommu]") {
  const std::vector<PciDevice> devices = {Gpu("0000:3b:00.0", 1), Gpu("0001:65:0a.0", 2)};
  CHECK(ParseTarget("65:0A.0", devices)->selector == Selector{.address = At("0001:65:0a.0")});
  const absl::Status none = ParseTarget("66:00.0", devices).status();
  CHECK(absl::IsNotFound(none));
  CHECK(Why(none) == "no device at '66:00.0'");
}

TEST_CASE("a short address that fits two domains is refused with both", "[iommu]") {
  const std::vector<PciDevice> devices = {Gpu("0000:65:00.0", 1), Gpu("10001:65:00.0", 2)};
  const absl::Status status = ParseTarget("65:00.0", devices).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(Why(status) == "'65:00.0' is ambiguous: 0000:65:00.0 and 10001:65:00.0; write the domain");
}

}  // namespace
}  // namespace vfio_agent
