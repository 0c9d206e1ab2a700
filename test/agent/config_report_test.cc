// The lines about the configuration.
#include <catch2/catch.hpp>

#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

TEST_CASE("a reload whose changes could not be counted tells no number of them", "[report]") {
  CHECK(ToText(ConfigReloaded("/etc/x", "SIGHUP", 2)) ==
        "event=config_reloaded config=/etc/x why=SIGHUP changes=2");
  CHECK(ToText(ConfigReloaded("/etc/x", "SIGHUP", 0)).ends_with(" changes=0"));
  CHECK(ToText(ConfigReloaded("/etc/x", "SIGHUP", std::nullopt)) ==
        "event=config_reloaded config=/etc/x why=SIGHUP");
}

}  // namespace
}  // namespace vfio_agent
