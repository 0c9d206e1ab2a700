// The command line: which subcommand, with what. The only user of CLI11.
#pragma once

namespace vfio_agent {

// Parses, runs the subcommand and returns the exit code.
int RunMain(int argc, char** argv);

}  // namespace vfio_agent
