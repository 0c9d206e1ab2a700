// The lines about the configuration.
#include <catch2/catch.hpp>

#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

TEST_CASE("a mode that is blocked says what helps against that very thing", "[agent]") {
  const auto line = [](const std::string& reason) {
    return ToText(ModeSeen(
        {.mode = "vm-passthrough", .target = "container", .state = "blocked", .reason = reason}));
  };
  CHECK_THAT(line("waits for pod team/vm"), Catch::Contains("end what is named"));
  CHECK_THAT(line("group 1: the kernel has not returned from `x`"),
             Catch::Contains("unbind_stuck") && !Catch::Contains("end what is named"));
}

TEST_CASE("a reload whose changes could not be counted tells no number of them", "[report]") {
  CHECK(ToText(ConfigReloaded("/etc/x", "SIGHUP", 2)) ==
        "event=config_reloaded config=/etc/x why=SIGHUP changes=2");
  CHECK(ToText(ConfigReloaded("/etc/x", "SIGHUP", 0)).ends_with(" changes=0"));
  CHECK(ToText(ConfigReloaded("/etc/x", "SIGHUP", std::nullopt)) ==
        "event=config_reloaded config=/etc/x why=SIGHUP");
}

}  // namespace
}  // namespace vfio_agent
