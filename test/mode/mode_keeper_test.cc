// What is kept of the mode over the end of an agent.
#include "agent/mode/mode_keeper.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sysfs/status.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000);
constexpr char kLabel[] = "nvidia.com/gpu.workload.config";

const ModeRule kByLabel = {
    .mode = Mode::kContainer,
    .label = kLabel,
    .values = {{"vm-passthrough", Mode::kPassthrough}, {"container", Mode::kContainer}}};

bool HasFile(const ScratchDir& dir) { return std::filesystem::exists(dir.path() + "/mode.json"); }

bool Step(ModeKeeper& keeper, absl::Time now, ModeView view = {}) {
  view.now = now;
  return keeper.Step(keeper.Ask(now), std::move(view));
}

TEST_CASE("a memory is written and read as it was", "[mode]") {
  const ModeMemory memory =
      GENERATE(ModeMemory{.mode = Mode::kVgpu},
               ModeMemory{.mode = Mode::kPassthrough, .target = Mode::kContainer});
  CHECK(*ParseModeMemory(ModeMemoryToText(memory)) == memory);
}

TEST_CASE("a memory that does not check is none", "[mode]") {
  const std::string text = GENERATE(
      "", "[]", "{", R"({"mode": "container"})", R"({"schema": "vfio-agent/mode/v2", "mode": 1})",
      R"({"schema": "vfio-agent/mode/v1", "mode": "sideways"})",
      R"({"schema": "vfio-agent/mode/v1", "mode": 1})",
      R"({"schema": "vfio-agent/mode/v1", "mode": "container", "target": "x"})");
  CAPTURE(text);
  CHECK(absl::IsDataLoss(ParseModeMemory(text).status()));
}

TEST_CASE("a mode that no label decides leaves no file and is no news", "[mode]") {
  const ScratchDir dir;
  ModeKeeper keeper(dir.path(), {.mode = Mode::kPassthrough});
  REQUIRE(keeper.Open().ok());
  CHECK_FALSE(Step(keeper, kStart));
  CHECK(keeper.decision().state == ModeState::kReady);
  REQUIRE(keeper.Keep().ok());
  CHECK_FALSE(HasFile(dir));
}

TEST_CASE("relabel first, then start: nothing is written before the label was read", "[mode]") {
  const ScratchDir dir;
  REQUIRE(ModeFile(dir.path()).Write({.mode = Mode::kPassthrough}).ok());
  ModeKeeper keeper(dir.path(), kByLabel);
  REQUIRE(keeper.Open().ok());
  CHECK(keeper.memory().mode == Mode::kPassthrough);
  Step(keeper, kStart);
  CHECK_FALSE(keeper.decision().write);
  CHECK(keeper.decision().withhold == std::nullopt);  // what is bound is served
  keeper.SetLabels({{kLabel, "container"}}, kStart);
  Step(keeper, kStart + absl::Seconds(1));
  CHECK_FALSE(keeper.decision().write);
  Step(keeper, kStart + absl::Seconds(11));
  Step(keeper, kStart + absl::Seconds(12));
  CHECK(keeper.memory().mode == Mode::kContainer);
  CHECK(keeper.decision().write);
}

TEST_CASE("each part of a switch is on disk before the next begins", "[mode]") {
  const ScratchDir dir;
  ModeKeeper keeper(dir.path(), kByLabel);
  REQUIRE(keeper.Open().ok());
  keeper.SetLabels({{kLabel, "container"}}, kStart);
  Step(keeper, kStart);
  REQUIRE(keeper.Keep().ok());
  CHECK(**ModeFile(dir.path()).Read() == ModeMemory{.mode = Mode::kContainer});
  keeper.SetLabels({{kLabel, "vm-passthrough"}}, kStart);
  Step(keeper, kStart + absl::Seconds(10));  // nothing is listed: in force at once
  REQUIRE(keeper.Keep().ok());
  const ModeMemory on_its_way{.mode = Mode::kPassthrough, .target = Mode::kPassthrough};
  CHECK(**ModeFile(dir.path()).Read() == on_its_way);
  ModeKeeper next(dir.path(), kByLabel);
  REQUIRE(next.Open().ok());
  CHECK(next.memory() == on_its_way);
}

TEST_CASE("a file that cannot be understood is told, and the next one replaces it", "[mode]") {
  const ScratchDir dir;
  dir.Write("mode.json", "nonsense");
  ModeKeeper keeper(dir.path(), kByLabel);
  const absl::Status status = keeper.Open();
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(Message(status), Catch::Contains("mode.json"));
  CHECK(keeper.memory().mode == Mode::kContainer);
  REQUIRE(keeper.Keep().ok());
  CHECK(ModeFile(dir.path()).Read().ok());
}

TEST_CASE("a file from a label's days follows a mode that is fixed now", "[mode]") {
  const ScratchDir dir;
  REQUIRE(ModeFile(dir.path()).Write({.mode = Mode::kPassthrough}).ok());
  ModeKeeper keeper(dir.path(), {.mode = Mode::kContainer});
  REQUIRE(keeper.Open().ok());
  CHECK(keeper.memory().mode == Mode::kPassthrough);
  Step(keeper, kStart);
  Step(keeper, kStart + absl::Seconds(1));
  REQUIRE(keeper.Keep().ok());
  CHECK((*ModeFile(dir.path()).Read())->mode == Mode::kContainer);
}

TEST_CASE("a value that is no mode is told once", "[mode]") {
  const ScratchDir dir;
  ModeKeeper keeper(dir.path(), kByLabel);
  keeper.SetLabels({{kLabel, "sideways"}}, kStart);
  CHECK(keeper.TakeInvalid() == "sideways");
  CHECK(keeper.TakeInvalid() == std::nullopt);
  keeper.SetLabels({{kLabel, "container"}}, kStart);
  CHECK(keeper.TakeInvalid() == std::nullopt);
  keeper.SetLabels({{kLabel, "sideways"}}, kStart);
  CHECK(keeper.TakeInvalid() == "sideways");
}

TEST_CASE("a label that cannot be read any more changes nothing", "[mode]") {
  const ScratchDir dir;
  ModeKeeper keeper(dir.path(), kByLabel);
  REQUIRE(keeper.Open().ok());
  keeper.SetLabels({{kLabel, "container"}}, kStart);
  Step(keeper, kStart);
  CHECK_FALSE(Step(keeper, kStart + absl::Hours(100)));
  CHECK(keeper.decision().write);
}

TEST_CASE("a value that is no mode stands in the status as long as it does", "[mode]") {
  const ScratchDir dir;
  ModeKeeper keeper(dir.path(), kByLabel);
  CHECK(keeper.Status().unread);
  keeper.SetLabels({{kLabel, "vm_passthrough"}}, kStart);
  Step(keeper, kStart);
  CHECK_FALSE(keeper.Status().unread);
  CHECK(keeper.Status().state == "ready");
  CHECK(keeper.Status().reason ==
        "label nvidia.com/gpu.workload.config=vm_passthrough is no mode; "
        "the default is used");
  keeper.SetLabels({{kLabel, "container"}}, kStart);
  Step(keeper, kStart);
  CHECK(keeper.Status().reason.empty());
}

}  // namespace
}  // namespace vfio_agent
