// The one-shot subcommands of the real binary on simulated nodes.
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

TEST_CASE("plan -o json has the documented shape", "[node]") {
  const Node node("hgx-8gpu");
  const nlohmann::json plan = node.RunJson({"plan"});
  CHECK(plan.at("schema") == "vfio-agent/plan/v1");
  CHECK(plan.at("iommu") ==
        nlohmann::json({{"state", "on"}, {"kind", "intel"}, {"acs_override", false}}));
  REQUIRE(plan.at("groups").size() == 8);
  const auto& group = plan.at("groups").at(0);
  CHECK(group.at("verdict") == "bind");
  CHECK(group.at("resource") == kH100);
  const auto& member = group.at("members").at(0);
  for (const char* key :
       {"address", "vendor", "device", "class", "driver", "role", "action", "to"}) {
    CAPTURE(key);
    CHECK(member.contains(key));
  }
  REQUIRE(plan.at("resources").size() == 1);
  CHECK(plan.at("resources").at(0).at("units").size() == 8);
  CHECK(plan.at("resources").at(0).at("units").at(0).at("state") == "to-bind");
  CHECK(plan.at("actions").at(0).at("op") == "d3cold");
  CHECK(plan.at("actions").at(1).at("op") == "override");
  CHECK(plan.at("actions").at(0).at("step") == 1);
  CHECK(plan.at("refusals").empty());
}

TEST_CASE("plan, list and explain write nothing", "[node]") {
  const Node node("hgx-8gpu");
  CHECK(node.Run({"plan"}).exit_code == 0);
  CHECK(node.Run({"list", "--all", "-o", "wide"}).exit_code == 0);
  CHECK(node.Run({"explain", "0000:1b:00.0"}).exit_code == 0);
  CHECK(node.Writes().empty());
}

TEST_CASE("the plan's text is a script that binds when a shell runs it", "[node]") {
  const Node node("cases/VIA-01");
  const ProgramResult plan = node.Run({"plan"});
  CHECK_THAT(plan.out,
             Catch::Contains("echo vfio-pci > /sys/bus/pci/devices/0000:01:00.1/driver_override\n"
                             "echo 0000:01:00.1 > /sys/bus/pci/drivers/snd_hda_intel/unbind\n"
                             "echo 0000:01:00.1 > /sys/bus/pci/drivers_probe\n"));
}

TEST_CASE("bind takes whole groups, release puts companions back too", "[node]") {
  const Node node("cases/VIA-05");
  CHECK(node.Run({"bind"}).exit_code == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "vfio-pci");
  CHECK(node.DriverOf("0000:01:00.1") == "vfio-pci");
  CHECK(node.DriverOf("0000:00:01.0") == "pcieport");
  CHECK(node.HasNode("1"));

  CHECK(node.Run({"release"}).exit_code == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");
  CHECK(node.OverrideOf("0000:01:00.0") == "(null)\n");
  CHECK_FALSE(node.HasNode("1"));
}

TEST_CASE("a second bind writes nothing", "[node]") {
  const Node node("hgx-8gpu");
  REQUIRE(node.Run({"bind"}).exit_code == 0);
  const std::string writes = node.Writes();
  CHECK(node.Run({"bind"}).exit_code == 0);
  CHECK(node.Writes() == writes);
}

TEST_CASE("bind with a selector leaves the other groups alone", "[node]") {
  const Node node("hgx-8gpu");
  CHECK(node.Run({"bind", "1b:00.0"}).exit_code == 0);
  CHECK(node.DriverOf("0000:1b:00.0") == "vfio-pci");
  CHECK(node.DriverOf("0000:43:00.0") == "nvidia");
}

TEST_CASE("bind of something that the configuration does not select is refused", "[node]") {
  const Node node("hgx-8gpu");
  const ProgramResult result = node.Run({"bind", "0000:02:00.0"});
  CHECK(result.exit_code == 3);
  CHECK(node.Writes().empty());
}

TEST_CASE("a group with a foreign member is refused with exit code 3 and nothing is written",
          "[node]") {
  const Node node("cases/VIA-17");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("foreign-member 0000:18:00.0"));
  CHECK_THAT(result.out, Catch::Contains("remedy:"));
  CHECK(node.Writes().empty());
}

TEST_CASE("plan --exit-code tells: 4 would change, 3 refused, 0 nothing to do", "[node]") {
  const Node node("cases/VIA-05");
  CHECK(node.Run({"plan", "--exit-code"}).exit_code == 4);
  REQUIRE(node.Run({"bind"}).exit_code == 0);
  CHECK(node.Run({"plan", "--exit-code"}).exit_code == 0);
  const Node refused("cases/VIA-17");
  CHECK(refused.Run({"plan", "--exit-code"}).exit_code == 3);
  CHECK(refused.Run({"explain", "1b:00.0", "--exit-code"}).exit_code == 3);
  CHECK(refused.Run({"plan"}).exit_code == 0);
}

TEST_CASE("what the configuration excludes was not asked for: plan --exit-code says 0", "[node]") {
  const Node node("cases/VIA-17");
  const std::string config = node.dir().Write(
      "config.yaml",
      "resources: [{select: [{vendor: \"10de\"}], exclude: [{vendor: \"10de\"}]}]\n");
  const ProgramResult plan = node.Run({"plan", "--exit-code", "-o", "json", "--config", config});
  CHECK_THAT(plan.out, Catch::Contains("\"code\": \"excluded\""));
  CHECK(plan.exit_code == 0);
}

TEST_CASE("release refuses a group that a process has open, and says which", "[node]") {
  const Node node("cases/VIA-05");
  REQUIRE(node.Run({"bind"}).exit_code == 0);
  node.Control("hold 1 4711 qemu-system-x86");
  const std::string writes = node.Writes();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"plan"}, {"explain", "0000:01:00.0"}}) {
    CHECK_THAT(node.Run(command).out, Catch::Contains("pid 4711 (qemu-system-x86)") &&
                                          !Catch::Contains("ready for guests"));
  }
  const nlohmann::json units =
      node.RunJson({"explain", "0000:01:00.0"}).at("groups").at(0).at("units");
  REQUIRE(units.size() == 1);
  CHECK(units.at(0).at("id") == "0000:01:00.0");
  CHECK_THAT(units.at(0).at("reason").get<std::string>(), Catch::Contains("pid 4711"));
  const ProgramResult result = node.Run({"release"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("held") && Catch::Contains("pid 4711 (qemu-system-x86)"));
  CHECK(node.Writes() == writes);

  node.Control("free 1");
  CHECK_THAT(node.Run({"explain", "0000:01:00.0"}).out, Catch::Contains("ready for guests"));
  CHECK(node.Run({"release"}).exit_code == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
}

TEST_CASE("BIND-07: a device left half-way is bound, and released without an override", "[node]") {
  const Node node("cases/BIND-07");
  CHECK(node.Run({"bind"}).exit_code == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "vfio-pci");
  CHECK(node.Run({"release", "0000:01:00.0"}).exit_code == 0);
  CHECK(node.OverrideOf("0000:01:00.0") == "(null)\n");
}

TEST_CASE("release without a selector leaves what others bound", "[node]") {
  const Node node("cases/VIA-13");
  CHECK(node.Run({"release"}).out == "nothing to release\n");
  CHECK(node.DriverOf("0000:21:00.0") == "vfio-pci");
}

TEST_CASE("BIND-13: of two equal cards the excluded one stays", "[node]") {
  const Node node("cases/BIND-13");
  const std::string config = node.dir().Write("config.yaml", R"(
resources:
  - select: [{vendor: "10de"}]
    exclude: [{address: "0000:65:00.0"}]
)");
  const ProgramResult result = node.Run({"bind", "--config", config});
  CHECK(result.exit_code == 0);
  CHECK(node.DriverOf("0000:17:00.0") == "vfio-pci");
  CHECK(node.DriverOf("0000:65:00.0") == "nvidia");
}

TEST_CASE("explain names the port that merges a group and the bits that it lacks", "[node]") {
  const Node node("cases/VIA-05");
  const ProgramResult result = node.Run({"explain", "01:00.0"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("0000:01:00.0 is with 0000:00:01.0"));
}

TEST_CASE("list devices, groups and resources as tables and documents", "[node]") {
  const Node node("hgx-8gpu");
  CHECK_THAT(node.Run({"list"}).out, Catch::StartsWith("GROUP") && Catch::Contains("10de:2330"));
  CHECK_THAT(node.Run({"list", "groups"}).out, Catch::Contains(kH100));
  CHECK_THAT(node.Run({"list", "resources"}).out, Catch::Contains("to-bind"));
  CHECK(node.RunJson({"list"}).at("devices").size() == 8);
  CHECK(node.RunJson({"list", "--all"}).at("devices").size() > 50);
  CHECK(node.RunJson({"list", "groups"}).at("schema") == "vfio-agent/groups/v1");
  CHECK(node.RunJson({"list", "resources"}).at("resources").at(0).at("name") == kH100);
  CHECK_THAT(node.Run({"list", "-o", "yaml"}).out, Catch::StartsWith("schema:"));
}

TEST_CASE("every line of a narrow table fits 100 columns", "[node]") {
  const Node node("hgx-8gpu");
  std::istringstream lines(node.Run({"list", "--all"}).out);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
  }
}

TEST_CASE("a selector that fits nothing or is none exits with 2", "[node]") {
  const Node node("cases/VIA-05");
  CHECK(node.Run({"bind", "0000:99:00.0"}).exit_code == 2);
  CHECK(node.Run({"bind", "not-a-selector"}).exit_code == 2);
  CHECK(node.Run({"release", "group:77"}).exit_code == 2);
}

TEST_CASE("config check tells the place of an error, config show what is in force", "[node]") {
  const ScratchDir dir;
  const std::string good = dir.Write("good.yaml", "bind: {parallel: 3}\n");
  const std::string bad = dir.Write("bad.yaml", "bind: {paralel: 3}\n");
  CHECK(RunAgent({"config", "check", "--config", good}).exit_code == 0);
  const ProgramResult result = RunAgent({"config", "check", "--config", bad});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("bad.yaml:1:8: bind.paralel: unknown key"));
  const ProgramResult shown = RunAgent({"config", "show", "--config", good});
  CHECK_THAT(shown.out, Catch::Contains("parallel: \"3\""));
  const std::string again = dir.Write("again.yaml", shown.out);
  CHECK(RunAgent({"config", "check", "--config", again}).exit_code == 0);
}

TEST_CASE("common options may stand before the subcommand or after it", "[node]") {
  const Node node("cases/VIA-05");
  CHECK(RunAgent({"--root", node.root(), "plan"}).out == node.Run({"plan"}).out);
  CHECK(RunAgent({"plan"}, {"VFIO_AGENT_ROOT=" + node.root()}).out == node.Run({"plan"}).out);
}

TEST_CASE("a flag can be set by the environment", "[node]") {
  CHECK(RunAgent({"config", "check"}, {"VFIO_AGENT_PARALLEL=many"}).exit_code == 2);
  CHECK_THAT(RunAgent({"config", "show"}, {"VFIO_AGENT_RESYNC=7s"}).out,
             Catch::Contains("resync: \"7s\""));
}

}  // namespace
}  // namespace vfio_agent
