// Stopper: ends the FUSE loop of the thread that made it, from wherever the wish comes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <thread>

#include "sysfs/fd.h"

namespace vfio_agent::sim {

class Stopper {
 public:
  // Blocks SIGTERM and SIGINT in this thread and all that it starts; a thread of the Stopper
  // takes them instead. `at_eof`: the end of standard input counts as well.
  explicit Stopper(bool at_eof);
  ~Stopper();
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;
  Stopper(Stopper&&) = delete;
  Stopper& operator=(Stopper&&) = delete;

  // Calls `stop` once when it is time, on another thread, and from then on interrupts the
  // starting thread's system calls until Finish(): libfuse waits there without looking.
  void Start(std::function<void()> stop);
  void Finish();

  // From any thread of the process.
  static void AskToStop();

 private:
  void Wait();

  bool at_eof_;
  Fd signals_;
  Fd finish_;
  std::function<void()> stop_;
  std::atomic<bool> finished_ = false;
  pthread_t loop_thread_;
  std::thread thread_;
};

}  // namespace vfio_agent::sim
