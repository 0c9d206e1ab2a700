// fake-kubelet: the fake kubelet as a program that takes its orders from stdin, for shell tests.
#include <CLI/CLI.hpp>
#include <iostream>

#include "test/kubelet/commands.h"

int main(int argc, char** argv) {
  vfio_agent::FakeKubelet::Options options;
  std::string generation = "1.36";
  CLI::App app("A kubelet's side towards plugins. Commands on stdin, one JSON line for each.");
  app.add_option("--dir", options.dir, "device-plugin directory")->required();
  app.add_option("--root-dir", options.root_dir, "root directory, to serve PodResources below it");
  app.add_option("--generation", generation, "1.36 or 1.37")
      ->check(CLI::IsMember({"1.36", "1.37"}));
  CLI11_PARSE(app, argc, argv);
  if (generation == "1.37") options.generation = vfio_agent::FakeKubelet::Generation::k137;
  return vfio_agent::RunCommands(options, std::cin, std::cout);
}
