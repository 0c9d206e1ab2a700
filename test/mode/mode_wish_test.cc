// What a label asks for, and when it counts.
#include "agent/mode/mode_wish.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000);
constexpr char kLabel[] = "nvidia.com/gpu.workload.config";

ModeRule LabelRule() {
  ModeRule rule{.mode = Mode::kContainer, .label = kLabel};
  for (const Mode mode : {Mode::kContainer, Mode::kPassthrough, Mode::kVgpu}) {
    rule.values[std::string(Name(mode))] = mode;
  }
  return rule;
}

NodeLabels Labels(const std::string& value) { return {{"a", "b"}, {kLabel, value}}; }

TEST_CASE("a fixed mode is wanted at once, whatever labels say", "[mode]") {
  ModeWish wish({.mode = Mode::kVgpu});
  wish.SetLabels(Labels("container"), kStart);
  CHECK(wish.Ask(Mode::kContainer, kStart).mode == Mode::kVgpu);
}

TEST_CASE("before the label was read nothing is known to be wanted", "[mode]") {
  ModeWish wish(LabelRule());
  const ModeWish::Answer answer = wish.Ask(Mode::kPassthrough, kStart + absl::Hours(1));
  CHECK(answer.mode == std::nullopt);
  CHECK_THAT(answer.why_unknown, Catch::Contains(kLabel) && Catch::Contains("not been read"));
  CHECK(answer.due == absl::InfiniteFuture());
}

TEST_CASE("a label that says what is in force counts at once", "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels(Labels("vm-passthrough"), kStart);
  CHECK(wish.Ask(Mode::kPassthrough, kStart).mode == Mode::kPassthrough);
}

TEST_CASE("a label that says something else counts once it has stayed the same for a while",
          "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels(Labels("vm-passthrough"), kStart);
  const ModeWish::Answer answer = wish.Ask(Mode::kContainer, kStart + absl::Seconds(9));
  CHECK(answer.mode == std::nullopt);
  CHECK(answer.due == kStart + absl::Seconds(10));
  CHECK_THAT(answer.why_unknown, Catch::Contains("asks for vm-passthrough"));
  wish.SetLabels(Labels("vm-passthrough"), kStart + absl::Seconds(9));  // no news
  CHECK(wish.Ask(Mode::kContainer, kStart + absl::Seconds(10)).mode == Mode::kPassthrough);
}

TEST_CASE("a label that keeps changing is not followed", "[mode]") {
  ModeWish wish(LabelRule());
  absl::Time now = kStart;
  for (int i = 0; i < 20; ++i) {
    now += absl::Seconds(6);
    wish.SetLabels(Labels(i % 2 == 0 ? "vm-passthrough" : "vm-vgpu"), now);
    CHECK(wish.Ask(Mode::kContainer, now + absl::Seconds(5)).mode == std::nullopt);
  }
  wish.SetLabels(Labels("container"), now);
  CHECK(wish.Ask(Mode::kContainer, now).mode == Mode::kContainer);
}

TEST_CASE("a node without the label gets the default, and is no cause for complaint", "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels({{"a", "b"}}, kStart);
  CHECK(wish.Ask(Mode::kContainer, kStart).mode == Mode::kContainer);
  CHECK(wish.Invalid().empty());
}

TEST_CASE("a value that is no mode gets the default, and is told", "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels(Labels("VM-Passthrough"), kStart);
  CHECK(wish.Ask(Mode::kContainer, kStart).mode == Mode::kContainer);
  CHECK(wish.Invalid() == "VM-Passthrough");
  wish.SetLabels(Labels("vm-vgpu"), kStart);
  CHECK(wish.Invalid().empty());
}

TEST_CASE("an empty value is no mode either", "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels(Labels(""), kStart);
  CHECK(wish.Ask(Mode::kContainer, kStart).mode == Mode::kContainer);
}

TEST_CASE("another label's key makes what was read worthless; other values do not", "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels(Labels("on"), kStart);
  ModeRule rule = LabelRule();
  rule.values["on"] = Mode::kVgpu;
  wish.SetRule(rule, kStart);
  CHECK(wish.Ask(Mode::kVgpu, kStart).mode == Mode::kVgpu);
  rule.label = "example.com/other";
  wish.SetRule(rule, kStart);
  CHECK(wish.Ask(Mode::kVgpu, kStart).mode == std::nullopt);
}

TEST_CASE("labels are news only where the one that decides says something else", "[mode]") {
  ModeWish wish(LabelRule());
  CHECK(wish.SetLabels(Labels("vm-vgpu"), kStart));
  NodeLabels labels = Labels("vm-vgpu");
  labels["vfio-agent/mode"] = "container";
  CHECK_FALSE(wish.SetLabels(labels, kStart));
  CHECK(wish.SetLabels(Labels("container"), kStart));
  CHECK_FALSE(ModeWish({.mode = Mode::kVgpu}).SetLabels(labels, kStart));
}

TEST_CASE("a rule that is read again unchanged does not begin the time anew", "[mode]") {
  ModeWish wish(LabelRule());
  wish.SetLabels(Labels("vm-vgpu"), kStart);
  wish.SetRule(LabelRule(), kStart + absl::Seconds(9));
  CHECK(wish.Ask(Mode::kContainer, kStart + absl::Seconds(10)).mode == Mode::kVgpu);
}

}  // namespace
}  // namespace vfio_agent
