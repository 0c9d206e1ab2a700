// The key `mode:`.
#include "agent/config/config_mode.h"

#include <catch2/catch.hpp>

#include "agent/commands/commands.h"
#include "agent/config/config.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string ErrorOf(const std::string& yaml) {
  const absl::StatusOr<Config> config = ParseConfig(yaml, "c.yaml");
  return config.ok() ? "valid" : Message(config.status());
}

TEST_CASE("a mode by label has its default, its settling time and its values", "[mode]") {
  const auto config = ParseConfig(
      "mode:\n"
      "  fromNodeLabel: nvidia.com/gpu.workload.config\n"
      "  default: vm-passthrough\n"
      "  values: {container: [none, host], vm-passthrough: [whole]}\n"
      "  settle: 30s\n"
      "  waitForHolders: 1h\n",
      "c.yaml");
  INFO(config.status());
  REQUIRE(config.ok());
  CHECK(config->mode == ModeRule{.mode = Mode::kPassthrough,
                                 .label = "nvidia.com/gpu.workload.config",
                                 .values = {{"container", Mode::kContainer},
                                            {"none", Mode::kContainer},
                                            {"host", Mode::kContainer},
                                            {"vm-passthrough", Mode::kPassthrough},
                                            {"whole", Mode::kPassthrough},
                                            {"vm-vgpu", Mode::kVgpu}},
                                 .settle = absl::Seconds(30),
                                 .wait_for_holders = absl::Hours(1)});
  CHECK(config->in_force == Mode::kPassthrough);
}

TEST_CASE("a node whose label says nothing stays with its containers, if nothing else is asked for",
          "[mode]") {
  const auto config = ParseConfig("mode: {fromNodeLabel: a}", "c.yaml");
  REQUIRE(config.ok());
  CHECK(config->mode.mode == Mode::kContainer);
  CHECK(config->mode.settle == absl::Seconds(10));
  CHECK(config->mode.wait_for_holders == absl::ZeroDuration());
  CHECK(config->policy.resources.empty());
  CHECK(config->whole.resources == DefaultPolicy().resources);
}

TEST_CASE("a mode that is in force takes its part of the whole, and gives it back", "[mode]") {
  auto config = ParseConfig("mode: container", "c.yaml");
  REQUIRE(config.ok());
  config->UseMode(Mode::kPassthrough);
  CHECK(config->policy == DefaultPolicy());
  config->UseMode(Mode::kVgpu);
  CHECK(config->policy.resources.empty());
  CHECK(config->in_force == Mode::kVgpu);
}

TEST_CASE("a wrong mode is told with its place", "[mode]") {
  struct Row {
    const char* yaml;
    const char* error;
  };
  const Row row = GENERATE(
      Row{"mode: []", "c.yaml:1:7: mode: want"}, Row{"mode: {}", "want a mode's name"},
      Row{"mode: {default: container}", "fromNodeLabel:"},
      Row{"mode: {fromNodeLabel: 'a b'}", "mode.fromNodeLabel: 'a b': want a label's key"},
      Row{"mode: {fromNodeLabel: '/a'}", "want a label's key"},
      Row{"mode: {fromNodeLabel: 'A.b/c'}", "want a label's key"},
      Row{"mode: {fromNodeLabel: 'a/b/c'}", "want a label's key"},
      Row{"mode: {fromNodeLabel: a, default: x}", "'x': want container"},
      Row{"mode: {fromNodeLabel: a, settle: 2h}", "'2h': want a duration from 0s to 1h"},
      Row{"mode: {fromNodeLabel: a, settle: -1s}", "'-1s': want a duration"},
      Row{"mode: {fromNodeLabel: a, waitForHolders: long}", "'long': want a duration from 0s to"},
      Row{"mode: {fromNodeLabel: a, values: {x: [y]}}", "mode.values.x: unknown key"},
      Row{"mode: {fromNodeLabel: a, values: {container: ['a b']}}", "no label's value"},
      Row{"mode: {fromNodeLabel: a, values: {container: [vm-vgpu]}}",
          "'vm-vgpu' stands for vm-vgpu already"});
  CAPTURE(row.yaml);
  CHECK_THAT(ErrorOf(row.yaml), Catch::Contains(row.error));
}

TEST_CASE("config show tells a mode by label in the file's own form", "[mode]") {
  const auto config = ParseConfig(
      "mode: {fromNodeLabel: a/b, values: {container: [none]}, waitForHolders: 5m}", "c.yaml");
  REQUIRE(config.ok());
  const Json shown = PolicyToJson(*config);
  CHECK(shown.at("resources").size() == 1);  // of the modes that it may come to
  const auto again = ParseConfig(Json({{"mode", shown.at("mode")}}).dump(), "shown.yaml");
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(again->mode == config->mode);
}

}  // namespace
}  // namespace vfio_agent
