// Variables of the environment.
#include "agent/config/settings.h"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace vfio_agent {
namespace {

TEST_CASE("a variable that is near to one of ours is told, one of a Service's is not", "[agent]") {
  const auto told = [](const std::string& name) {
    ::setenv(name.c_str(), "x", 1);  // NOLINT(concurrency-mt-unsafe)
    const std::vector<std::string> sentences = TellMisspeltVariables();
    ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    return sentences.empty() ? "" : sentences.front();
  };
  CHECK(told("VFIO_AGENT_UNBIND_TIMOUT") ==
        "VFIO_AGENT_UNBIND_TIMOUT of the environment means nothing; did you mean "
        "VFIO_AGENT_UNBIND_TIMEOUT?");
  CHECK_THAT(told("VFIO_AGENT_CONFG"), Catch::Contains("did you mean VFIO_AGENT_CONFIG?"));
  CHECK_THAT(told("VFIO_AGENT_resync"), Catch::Contains("did you mean VFIO_AGENT_RESYNC?"));
  for (const char* name :
       {"VFIO_AGENT_RESYNC", "VFIO_AGENT_ROOT", "VFIO_AGENT_PORT", "VFIO_AGENT_SERVICE_HOST",
        "VFIO_AGENT_SERVICE_PORT", "VFIO_AGENT_SERVICE_PORT_METRICS", "VFIO_AGENT_PORT_9431_TCP",
        "VFIO_AGENT_PORT_9431_TCP_ADDR", "VFIO_AGENT_PORT_9431_TCP_PORT",
        "VFIO_AGENT_PORT_9431_TCP_PROTO", "VFIO_AGENT_METRICS_PORT",
        "VFIO_AGENT_METRICS_SERVICE_HOST", "VFIO_AGENT_API_PORT", "VFIO_AGENT_NODE_PORT",
        "VFIO_AGENT_", "VFIO_AGENTS_RESYN"}) {
    CAPTURE(name);
    CHECK(told(name).empty());
  }
}

}  // namespace
}  // namespace vfio_agent
