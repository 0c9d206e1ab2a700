// The program: everything is in RunMain.
#include "agent/commands/command_line.h"

#include <poll.h>
#include <unistd.h>

#include <iostream>

#include "agent/exit_code.h"

namespace {

// The reader of a pipe has what it wanted (`… | head -1`): no error to tell.
bool ReaderIsGone() {
  pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int exit_code = vfio_agent::RunMain(argc, argv);
  std::cout.flush();
  if (std::cout || exit_code != vfio_agent::kExitDone) return exit_code;
  if (ReaderIsGone()) return vfio_agent::kExitFailed;
  std::cerr << "vfio-agent: the answer could not be written\n";
  return vfio_agent::kExitFailed;
}
