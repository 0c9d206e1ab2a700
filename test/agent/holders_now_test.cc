// Who is named in the line of a job that failed.
#include "agent/work/holders_now.h"

#include <catch2/catch.hpp>

#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

struct Failed {
  explicit Failed(Code code) {
    tree.Below(kCard, "drm/card1/dev", "226:1").Process(8, "python3", {"/dev/dri/card1"});
    tree.Process(9, "qemu-system-x86", {"/dev/vfio/26"});
    event.job = {.group = 26, .actions = {Unbind{*PciAddress::Parse(kCard), "nvidia"}}};
    event.status = absl::DeadlineExceededError("the kernel did not answer");
    event.code = code;
  }
  std::string Holders() {
    UseReader reader;
    return HoldersNow(tree.Open(), event, reader);
  }

  UseTree tree;
  JobEvent event;
};

TEST_CASE("a write that a holder can be the cause of names who has the device and its group open",
          "[agent]") {
  const Code code = GENERATE(Code::kUnbindTimeout, Code::kUnbindStuck, Code::kHeld,
                             Code::kProbeRefused, Code::kDriverChanged, Code::kNodeMissing);
  CHECK(Failed(code).Holders() ==
        "0000:65:00.0 is held open by pid 8 (python3): /dev/dri/card1; "
        "/dev/vfio/26 is open in pid 9 (qemu-system-x86)");
}

TEST_CASE("nobody is looked for where nothing failed, or where nobody knows what did", "[agent]") {
  Failed done(Code::kProbeRefused);
  done.event.status = absl::OkStatus();
  CHECK(done.Holders().empty());
  Failed cut_off(Code::kProbeRefused);
  cut_off.event.cut_off = true;
  CHECK(cut_off.Holders().empty());
}

TEST_CASE("nobody is looked for where no holder can be the cause", "[agent]") {
  CHECK(Failed(Code::kPermissionDenied).Holders().empty());
  CHECK(Failed(Code::kOverrideUnsupported).Holders().empty());
}

}  // namespace
}  // namespace vfio_agent
