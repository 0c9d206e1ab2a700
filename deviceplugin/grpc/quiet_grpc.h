// QuietGrpc: takes from gRPC what would wake an idle process.
#pragma once

namespace vfio_agent {

// gRPC 1.51 keeps two lists of timers, and a thread for each that looks at its list at least once a
// second although nothing is in it. An object of this kind replaces one list by a queue that sleeps
// until its first entry is due, and sees to it that nobody looks at the other.
//
// Anything else of this process that uses gRPC must be made after the first object.
class QuietGrpc {
 public:
  QuietGrpc();
  ~QuietGrpc();

  // Ends the thread of the other list until the object goes; waits for it some milliseconds, the
  // first time. No deadline that is given to gRPC passes by itself then: whoever sets one keeps it
  // as well (RegisterCall). What else hangs on that list is no use here: keep-alive pings, which a
  // unix socket does not need, limits on the age of a connection, which we do not set, and the
  // deadlines of calls that come in, which the caller keeps.
  void StopTimers();

  QuietGrpc(const QuietGrpc&) = delete;
  QuietGrpc& operator=(const QuietGrpc&) = delete;

 private:
  bool stopped_ = false;
};

}  // namespace vfio_agent
