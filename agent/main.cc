// The program: everything is in RunMain.
#include "agent/command_line.h"

#include <iostream>

#include "agent/exit_code.h"

int main(int argc, char** argv) {
  const int exit_code = vfio_agent::RunMain(argc, argv);
  std::cout.flush();
  if (std::cout || exit_code != vfio_agent::kExitDone) return exit_code;
  std::cerr << "vfio-agent: the answer could not be written\n";
  return vfio_agent::kExitFailed;
}
