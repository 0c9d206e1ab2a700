// Which units another mode has no use for, who has them, and what goes back.
#include "agent/mode/mode_view.h"

#include <catch2/catch.hpp>

#include "agent/mode/mode_return.h"
#include "iommu/mdev/mdev.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kH100[] = "nvidia.com/GH100_H100_SXM5_80GB";

// A card that is bound, served and nobody's.
Picture Served() {
  Picture picture{.facts = Node({Gpu(kGpu, 17, "vfio-pci")})};
  picture.custody = Asked(TakenFrom({{kGpu, "nvidia"}}));
  picture.custody.tenancy = Tenancy{};
  picture.plan = MakePlan(picture.facts, DefaultPolicy(), TestNames(), picture.custody);
  return picture;
}

Tenancy& TenancyOf(Picture& picture) { return *picture.custody.tenancy; }

// As a fixed mode uses it.
ModeUse UseOf(Mode mode) { return UseIn(mode, {}); }

ModeView See(Picture picture, Mode next) {
  picture.plan = MakePlan(picture.facts, DefaultPolicy(), TestNames(), picture.custody);
  ModeView view;
  SeeWhatGoes(picture, UseOf(next), {}, view);
  return view;
}

TEST_CASE("container has no use for a unit, vm-passthrough has for all", "[mode]") {
  CHECK(See(Served(), Mode::kContainer).listed);
  CHECK(See(Served(), Mode::kVgpu).listed);
  CHECK_FALSE(See(Served(), Mode::kPassthrough).listed);
}

TEST_CASE("vm-vgpu has a use for mediated devices alone", "[mode]") {
  CHECK(HasUseFor(UseOf(Mode::kVgpu), Unit{.mdev_type = "nvidia-222"}));
  CHECK(HasUseFor(UseOf(Mode::kVgpu), Unit{.vgpu_type = "1145"}));
  CHECK_FALSE(HasUseFor(UseOf(Mode::kVgpu), Unit{}));
  CHECK_FALSE(HasUseFor(UseOf(Mode::kContainer), Unit{.mdev_type = "nvidia-222"}));
}

TEST_CASE("each mode has its part of the policy", "[mode]") {
  Policy whole = DefaultPolicy();
  whole.mdev.push_back({});
  CHECK(PolicyFor(UseOf(Mode::kPassthrough), whole) == whole);
  CHECK(PolicyFor(UseOf(Mode::kVgpu), whole).resources.empty());
  CHECK(PolicyFor(UseOf(Mode::kVgpu), whole).mdev.size() == 1);
  CHECK(PolicyFor(UseOf(Mode::kContainer), whole).resources.empty());
  CHECK(PolicyFor(UseOf(Mode::kContainer), whole).mdev.empty());
}

TEST_CASE("where a label decides, the same cards are whole in one mode and cut in the other",
          "[mode]") {
  const ModeRule by_label{.label = "x"};
  CHECK(UseIn(Mode::kPassthrough, by_label) == ModeUse{.devices = true, .vgpus = false});
  CHECK(UseIn(Mode::kVgpu, by_label) == ModeUse{.devices = false, .vgpus = true});
  CHECK(UseIn(Mode::kContainer, by_label) == ModeUse{.devices = false, .vgpus = false});
  CHECK(UseIn(Mode::kPassthrough, {}) == ModeUse{});
}

TEST_CASE("a unit that nobody has is in nobody's way", "[mode]") {
  CHECK(See(Served(), Mode::kContainer).tenants.empty());
}

TEST_CASE("a pod that has a unit is named, and its process is not named besides", "[mode]") {
  Picture picture = Served();
  TenancyOf(picture).claims.list = {{"team", "vm", "compute", kH100, kGpu}};
  TenancyOf(picture).open[17] = {{.pid = 4711, .command = "qemu"}};
  CHECK(See(picture, Mode::kContainer).tenants ==
        std::vector<std::string>{"pod team/vm (container compute), which has 0000:3b:00.0"});
}

TEST_CASE("a process that has a unit open without a pod is named", "[mode]") {
  Picture picture = Served();
  TenancyOf(picture).open[17] = {{.pid = 4711, .command = "qemu"}};
  CHECK(See(picture, Mode::kContainer).tenants ==
        std::vector<std::string>{"pid 4711 (qemu), which has 0000:3b:00.0 open"});
}

TEST_CASE("a unit that was given a moment ago is some pod's", "[mode]") {
  Picture picture = Served();
  TenancyOf(picture).grants = {{.resource = kH100, .unit = kGpu, .group = 17}};
  CHECK(See(picture, Mode::kContainer).tenants ==
        std::vector<std::string>{"the pod that was just given 0000:3b:00.0"});
}

TEST_CASE("a kubelet that does not tell its pods may have given any of the units", "[mode]") {
  Picture picture = Served();
  TenancyOf(picture).silent = "it does not answer";
  CHECK(See(picture, Mode::kContainer).tenants ==
        std::vector<std::string>{"pods that are not known: it does not answer"});
  CHECK(See(picture, Mode::kPassthrough).tenants.empty());
}

TEST_CASE("what the kubelet counts as healthy is advertised still", "[mode]") {
  Picture picture = Served();
  CHECK(See(picture, Mode::kContainer).advertised.empty());  // it does not tell
  using Counted = std::map<std::string, std::set<std::string>>;
  auto& counted = TenancyOf(picture).claims.allocatable;
  counted = Counted();
  (*counted)["nvidia.com/other"] = {std::string(kGpu)};  // another resource's unit of that name
  CHECK(See(picture, Mode::kContainer).advertised.empty());
  (*counted)[kH100] = {std::string(kGpu)};
  CHECK(See(picture, Mode::kContainer).advertised == std::vector<std::string>{kGpu});
  TenancyOf(picture).silent = "it does not answer";  // what it counted before is no news
  CHECK(See(picture, Mode::kContainer).advertised.empty());
  CHECK_FALSE(See(picture, Mode::kContainer).tenants.empty());
}

TEST_CASE("what slices may still have of units served by claims is to leave them first", "[mode]") {
  Picture picture = Served();
  const auto see = [&picture](const SlicedUnits& sliced) {
    ModeView view;
    SeeWhatGoes(picture, UseOf(Mode::kContainer), sliced, view);
    return view.sliced;
  };
  const std::vector<std::string> unit = {kGpu};
  CHECK(see({.known = false}).empty());  // by the device plugin: it has never been in a slice
  picture.plan.resources.at(0).serve = Serve::kDra;
  CHECK(see({.units = {kGpu}}) == unit);
  CHECK(see({.known = false}) == unit);
  CHECK(see({}).empty());
}

TEST_CASE("withheld are units that are ready or held, with the reason that the log has", "[mode]") {
  Picture picture = Served();
  Unit& unit = picture.plan.resources.at(0).units.at(0);
  SECTION("ready") {}
  SECTION("held: its pod keeps it, and no other gets it") { unit.state = UnitState::kHeld; }
  Withhold(Mode::kContainer, UseOf(Mode::kContainer), picture.plan);
  CHECK(unit.state == UnitState::kWithheld);
  CHECK(unit.reason == "mode: switching to container");
}

TEST_CASE("a unit that is unhealthy keeps its own reason, and what stays is not withheld",
          "[mode]") {
  Picture picture = Served();
  Unit& unit = picture.plan.resources.at(0).units.at(0);
  Withhold(Mode::kPassthrough, UseOf(Mode::kPassthrough), picture.plan);
  CHECK(unit.state == UnitState::kReady);
  unit.state = UnitState::kUnhealthy;
  Withhold(Mode::kContainer, UseOf(Mode::kContainer), picture.plan);
  CHECK(unit.state == UnitState::kUnhealthy);
}

TEST_CASE("what the journal has goes back in the modes that have no use for it", "[mode]") {
  const Picture picture = Served();
  CHECK(SurplusOf(UseOf(Mode::kContainer), picture).groups == std::set<int>{17});
  CHECK(SurplusOf(UseOf(Mode::kVgpu), picture).devices == std::vector<PciAddress>{At(kGpu)});
  CHECK(SurplusOf(UseOf(Mode::kPassthrough), picture) == Surplus{});
}

TEST_CASE("an adopted device, and one of an earlier boot, stay where they are", "[mode]") {
  Picture picture = Served();
  SECTION("adopted") { picture.custody.records.clear(); }
  SECTION("of an earlier boot") { picture.custody.records.begin()->second.this_boot = false; }
  CHECK(SurplusOf(UseOf(Mode::kContainer), picture) == Surplus{});
}

TEST_CASE("mediated devices that this agent has made go in container, others' stay", "[mode]") {
  const std::string ours_uuid = MdevUuid(At(kGpu), "nvidia-222", 0);
  constexpr char kTheirs[] = "11111111-2222-4333-8444-555555555555";
  Picture picture{.facts = Node({Gpu(kGpu, 17)})};
  const MdevInstance ours{ours_uuid, At(kGpu), "nvidia-222", 40, "nvidia-vgpu-vfio"};
  picture.facts.mdev.instances = {ours, {kTheirs, At(kGpu), "nvidia-222", 41, "x"}};
  CHECK(SurplusOf(UseOf(Mode::kContainer), picture).mdevs == std::set<std::string>{ours_uuid});
  CHECK(SurplusOf(UseOf(Mode::kContainer), picture).groups == std::set<int>{40});
  CHECK(SurplusOf(UseOf(Mode::kVgpu), picture) == Surplus{});
}

TEST_CASE("vGPU types that this agent has set go in the modes that have no use for vGPUs",
          "[mode]") {
  Picture picture = Served();
  picture.custody.records.begin()->second.vgpu_type = 1145;
  const ModeRule by_label{.label = "nvidia.com/gpu.workload.config"};
  const auto goes = [&](const ModeUse& use) { return !SurplusOf(use, picture).devices.empty(); };
  CHECK(goes(UseOf(Mode::kContainer)));
  CHECK_FALSE(goes(UseOf(Mode::kVgpu)));
  CHECK_FALSE(goes(UseOf(Mode::kPassthrough)));
  CHECK(goes(UseIn(Mode::kPassthrough, by_label)));
}

TEST_CASE("only what somebody uses keeps a mode from being ready, not what is never given",
          "[mode]") {
  Plan plan;
  plan.refusals = {{.code = Code::kInUseHolder, .text = "0000:3b:00.0 is open in pid 7"},
                   {.code = Code::kBootDisplay, .text = "the console"},
                   {.code = Code::kHeld, .text = "a guest has it"}};
  CHECK(WhoKeeps(plan) ==
        std::vector<std::string>{"the end of a use: 0000:3b:00.0 is open in pid 7",
                                 "the end of a use: a guest has it"});
}

}  // namespace
}  // namespace vfio_agent
