// device-plugin-conformance: holds any device plugin to the kubelet's contract. See README.md.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "test/conformance/runner.h"

namespace {

using Generation = vfio_agent::FakeKubelet::Generation;
using vfio_agent::conformance::SuiteOptions;

void AddOptions(CLI::App& app, SuiteOptions& options, std::string& generation, double& seconds) {
  const auto add = [&app](const char* flag, auto& value, const char* variable, const char* help) {
    return app.add_option(flag, value, help)->envname(variable);
  };
  add("--resource", options.resource, "CONFORMANCE_RESOURCE", "the resource to look at");
  add("--devices", options.devices, "CONFORMANCE_DEVICES", "how many devices it has in the end");
  add("--generation", generation, "CONFORMANCE_GENERATION", "136, 137 or both")
      ->check(CLI::IsMember({"136", "137", "both"}));
  add("--only", options.only, "CONFORMANCE_ONLY", "patterns for names or rules")->delimiter(',');
  add("--skip", options.skip, "CONFORMANCE_SKIP", "patterns for names or rules")->delimiter(',');
  add("--on-unhealthy", options.on_unhealthy, "CONFORMANCE_ON_UNHEALTHY", "makes {id} sick");
  add("--on-healthy", options.on_healthy, "CONFORMANCE_ON_HEALTHY", "heals {id}");
  add("--on-removed", options.on_removed, "CONFORMANCE_ON_REMOVED", "takes {id} away");
  add("--on-returned", options.on_returned, "CONFORMANCE_ON_RETURNED", "brings {id} back");
  add("--dir", options.dir, "CONFORMANCE_DIR", "the device-plugin directory; emptied!");
  add("--root", options.root, "CONFORMANCE_ROOT", "the kubelet's root directory");
  add("--device-root", options.device_root, "CONFORMANCE_DEVICE_ROOT", "where host paths begin");
  add("--timeout", seconds, "CONFORMANCE_TIMEOUT", "seconds that the plugin has for each step");
  app.add_option("command", options.command, "the plugin, with {dir} and {root}");
}

int List(const SuiteOptions& options) {
  for (const auto& check : vfio_agent::conformance::Selected(options)) {
    std::cout << absl::StrFormat("%-3s  %-24s  %s\n", check.rule, check.name, check.sentence);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  SuiteOptions options;
  std::string generation = "both";
  double seconds = absl::ToDoubleSeconds(options.timeout);
  bool list = false;
  CLI::App app("Holds a device plugin to the kubelet's contract.");
  AddOptions(app, options, generation, seconds);
  app.add_flag("--list", list, "only say what would be tried");
  CLI11_PARSE(app, argc, argv);
  if (list) return List(options);
  const auto checks = vfio_agent::conformance::Selected(options);
  if (options.command.empty() || checks.empty()) {
    std::cerr << (checks.empty() ? "no such check\n" : "no command line of a plugin\n");
    return 2;
  }
  options.timeout = absl::Seconds(seconds);
  if (generation == "136") options.generations = {Generation::k136};
  if (generation == "137") options.generations = {Generation::k137};
  const auto results = vfio_agent::conformance::RunChecks(options, checks, [](const auto& result) {
    std::cout << vfio_agent::conformance::Line(result) << std::endl;
  });
  std::cout << vfio_agent::conformance::Summary(results) << std::endl;
  return vfio_agent::conformance::AllKept(results) ? 0 : 1;
}
