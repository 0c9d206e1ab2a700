// sim-node: a simulated node's /sys, /proc, /dev and /lib/modules below a mount point.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "sysfs/status.h"
#include "test/sim/dump.h"
#include "test/sim/fuse_front.h"
#include "test/sim/kernel.h"
#include "test/sim/machine.h"
#include "test/sim/scenario.h"

namespace vfio_agent::sim {
namespace {

struct Options {
  std::string machine;
  std::string scenario;
  std::string mount;
  std::string dump;
  int synthetic = 0;
  bool bound = false;
  bool exit_on_eof = false;
};

absl::Status Run(const Options& options) {
  Machine machine;
  if (options.synthetic > 0) {
    machine = MakeSyntheticMachine(options.synthetic, options.bound);
  } else {
    ASSIGN_OR_RETURN(machine, LoadMachine(options.machine));
  }
  if (!options.scenario.empty()) {
    ASSIGN_OR_RETURN(const Scenario scenario, LoadScenario(options.scenario));
    ApplyScenario(scenario, machine);
  }
  Kernel kernel(std::move(machine));
  if (!options.dump.empty()) return DumpTree(kernel, options.dump);
  return Serve(kernel,
               {.mount_point = options.mount, .exit_on_eof = options.exit_on_eof, .mounted = [] {
                  std::puts("ready");
                  std::fflush(stdout);
                }});
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Serves a simulated node's /sys, /proc and /dev that behave as the kernel's");
  auto* const source = app.add_option_group("source");
  source->add_option("--machine", options.machine, "machine file (YAML)")->type_name("FILE");
  source->add_option("--synthetic", options.synthetic, "a generated node of N functions")
      ->check(CLI::Range(1, 100000));
  source->require_option(1);
  app.add_flag("--bound", options.bound, "with --synthetic: all functions on vfio-pci");
  app.add_option("--scenario", options.scenario, "faults and processes (YAML)")->type_name("FILE");
  auto* const result = app.add_option_group("result");
  result->add_option("--mount", options.mount, "serve here")->type_name("DIR");
  result->add_option("--dump", options.dump, "write the tree as plain files")->type_name("DIR");
  result->require_option(1);
  app.add_flag("--exit-on-eof", options.exit_on_eof, "end with standard input");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "sim-node: %s\n", Message(status).c_str());
  return 1;
}

}  // namespace
}  // namespace vfio_agent::sim

int main(int argc, char** argv) { return vfio_agent::sim::Main(argc, argv); }
