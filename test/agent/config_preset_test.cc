#include <catch2/catch.hpp>

#include "agent/config/config.h"
#include "iommu/policy/preset.h"
#include "sysfs/status.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

std::string ErrorOf(const std::string& yaml) {
  const absl::StatusOr<Config> config = ParseConfig(yaml, "c.yaml");
  return config.ok() ? "valid" : Message(config.status());
}

ResourceRule RuleIn(const std::string& yaml) {
  const absl::StatusOr<Config> config = ParseConfig(yaml, "c.yaml");
  INFO(config.status());
  REQUIRE(config.ok());
  return config->policy.resources.at(0);
}

TEST_CASE("a preset alone is a whole entry", "[agent]") {
  for (const Preset& preset : Presets()) {
    CAPTURE(preset.name);
    CHECK(RuleIn("resources: [{preset: " + std::string(preset.name) + "}]") == RuleOf(preset));
  }
}

TEST_CASE("what the entry says itself wins over its preset, before it or behind it", "[agent]") {
  const std::string own =
      "domain: gpu.example.org, suffix: _VM, select: [{vendor: \"8086\", device: \"56c1\"}], "
      "exclude: []";
  for (const std::string& text : {"{preset: intel, " + own + "}", "{" + own + ", preset: intel}"}) {
    const ResourceRule rule = RuleIn("resources: [" + text + "]");
    CHECK(rule.preset == "intel");
    CHECK(rule.domain == "gpu.example.org");
    CHECK(rule.suffix == "_VM");
    CHECK(rule.select ==
          std::vector<Selector>{{.vendor = uint16_t{0x8086}, .device = uint16_t{0x56c1}}});
    CHECK(rule.exclude.empty());
  }
  CHECK(RuleIn("resources: [{preset: rebellions, suffix: \"\"}]").suffix.empty());
  CHECK(RuleIn("resources: [{preset: \"\", select: [{vendor: \"10de\"}]}]").preset.empty());
}

TEST_CASE("an exclusion of the entry's own leaves those of its preset", "[agent]") {
  const std::string processor = "0000:00:02.0";
  const ResourceRule rule = RuleIn(
      "resources: [{preset: intel, exclude: [{address: \"0000:03:00.0\"}, "
      "{address: \"" +
      processor + "\"}]}]");
  REQUIRE(rule.exclude.size() == 2);
  CHECK(rule.exclude[0].address->ToString() == processor);
  CHECK(rule.exclude[1].address->ToString() == "0000:03:00.0");
}

TEST_CASE("a wrong preset, suffix, NUMA or noiommu key is told with its place", "[agent]") {
  struct Row {
    const char* entry;
    const char* error;
  };
  const auto row = GENERATE(
      Row{"{preset: nvidea}",
          "c.yaml:1:22: resources[0].preset: 'nvidea': want one of nvidia, amd, intel, rebellions, "
          "nvme, mellanox; did you mean 'nvidia'?"},
      Row{"{preset: NVIDIA}", "did you mean 'nvidia'?"}, Row{"{preset: acme}", "nvme, mellanox"},
      Row{"{preset: [amd]}", "resources[0].preset: "},
      Row{"{pre-set: amd}", "resources[0].pre-set: unknown key"},
      Row{"{domain: amd.com}", "a resource needs select: or preset:"},
      Row{"{preset: amd, suffix: \"_P T\"}", "resources[0].suffix: "},
      Row{"{preset: amd, suffix: _}", "resources[0].suffix: resource name 'amd.com/MODEL_': "},
      Row{"{preset: amd, numa: near}",
          "'near': want true, false or nearest; did you mean 'nearest'"},
      Row{"{preset: amd, noiommu: yes}", "'yes': want true or false"},
      Row{"{preset: amd}, {preset: amd}", "selects the same as resources[0]"});
  CAPTURE(row.entry);
  CHECK_THAT(ErrorOf("resources: [" + std::string(row.entry) + "]"), Catch::Contains(row.error));
}

TEST_CASE("NUMA nodes are told as they are, by the nearest, or not at all", "[agent]") {
  const std::string start = "resources: [{preset: nvidia";
  CHECK(RuleIn(start + "}]").numa);
  CHECK_FALSE(RuleIn(start + "}]").numa_nearest);
  CHECK(RuleIn(start + ", numa: nearest}]").numa);
  CHECK(RuleIn(start + ", numa: nearest}]").numa_nearest);
  CHECK_FALSE(RuleIn(start + ", numa: false}]").numa);
  CHECK_FALSE(RuleIn(start + "}]").noiommu);
  CHECK(RuleIn(start + ", noiommu: true}]").noiommu);
}

TEST_CASE("config show writes a preset out, and can be read again", "[agent]") {
  const ScratchDir dir;
  const std::string file = dir.Write(
      "c.yaml", "resources: [{preset: rebellions, numa: nearest, noiommu: true}, {preset: intel}]");
  const ProgramResult shown = RunAgent({"config", "show", "--config", file});
  INFO(shown.out << shown.err);
  REQUIRE(shown.exit_code == 0);
  CHECK_THAT(shown.out, Catch::Contains("rebellions.ai"));
  const absl::StatusOr<Config> written = ReadConfig(file);
  const absl::StatusOr<Config> again = ParseConfig(shown.out, "shown.yaml");
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(again->policy == written->policy);
}

TEST_CASE("config check tells what is known of the presets", "[agent]") {
  const ScratchDir dir;
  const std::string file = dir.Write("c.yaml", "resources: [{preset: amd}, {preset: nvme}]");
  const ProgramResult result = RunAgent({"config", "check", "--config", file});
  CHECK(result.exit_code == 0);
  for (const char* name : {"amd", "nvme"}) {
    CHECK_THAT(result.out, Catch::Contains("preset " + std::string(name) + ": " +
                                           std::string(FindPreset(name)->note)));
  }
}

}  // namespace
}  // namespace vfio_agent
