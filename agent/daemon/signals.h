// Signals: SIGTERM, SIGINT and SIGHUP as flags that the loop looks at.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

// A thread of its own waits for them, and not the loop: when the loop is stuck in a read that the
// kernel does not answer, the process must end all the same, two seconds after it was asked to.
// One object in a process, before any other thread starts.
class Signals {
 public:
  absl::Status Install();

  int fd() const { return read_end_.get(); }
  // Takes what has come since the last call.
  struct Seen {
    bool terminate = false;
    bool interrupt = false;
    bool reload = false;
  };
  Seen Take();

  // How long the end may take from the signal on, and with what code the process is ended then. Two
  // seconds and 0, unless told otherwise. Any thread.
  static void SetGrace(absl::Duration grace, int code);
  // From now on the end takes the time that it takes.
  static void LiftDeadline();

 private:
  Fd read_end_;
};

// Keeps the three for Signals::Install(): before it they would end the process where it stands.
void HoldSignals();

// Lets all signals through again: for a child process.
void ResetSignals();

}  // namespace vfio_agent
