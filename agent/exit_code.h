// The exit codes of every subcommand.
#pragma once

namespace vfio_agent {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,       // it was tried and failed
  kExitUsage = 2,        // the command line or the configuration
  kExitRefused = 3,      // something that was asked for was refused
  kExitWouldChange = 4,  // plan --exit-code: there is something to do
};

}  // namespace vfio_agent
