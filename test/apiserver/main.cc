// fake-apiserver: the fake API server as a program that takes its orders from stdin, for shell
// tests.
#include <CLI/CLI.hpp>
#include <iostream>

#include "test/apiserver/commands.h"

int main(int argc, char** argv) {
  std::string host = "127.0.0.1";
  std::string dir;
  CLI::App app("Kubernetes' API over HTTPS. Commands on stdin, one JSON line for each.");
  app.add_option("--host", host, "127.0.0.1 or ::1");
  app.add_option("--dir", dir, "where token and ca.crt are written")->required();
  CLI11_PARSE(app, argc, argv);
  return vfio_agent::RunApiCommands(host, dir, std::cin, std::cout);
}
