#include "agent/daemon/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::atomic<int64_t> grace_ms = 1900;
std::atomic<int> exit_code = 0;
std::atomic<bool> deadline_lifted = false;

sigset_t Taken() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, number);
  return set;
}

// The log is the loop's, which does not come to it.
void Complain() {
  constexpr std::string_view kWhy =
      "vfio-agent: the kernel kept the loop, so nothing was released at the end: "
      "release it by hand with `vfio-agent release`\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kWhy.data(), kWhy.size());
}

void WaitForSignals(const Fd& pipe) {
  const sigset_t set = Taken();
  for (;;) {
    int number = 0;
    if (::sigwait(&set, &number) != 0) continue;
    const char byte = static_cast<char>(number);
    // A full pipe means that the loop has enough to wake up for.
    [[maybe_unused]] const ssize_t n = ::write(pipe.get(), &byte, 1);
    if (number == SIGHUP) continue;
    absl::SleepFor(absl::Milliseconds(grace_ms.load()));
    // The loop waits for the kernel. Devices stay bound either way.
    if (deadline_lifted) continue;
    if (exit_code != 0) Complain();
    ::_exit(exit_code);
  }
}

}  // namespace

absl::Status Signals::Install() {
  const sigset_t set = Taken();
  const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (error != 0) return ErrnoStatus(error, "block signals");
  // The reader of the log may go away; that must not take the daemon with it.
  ::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoStatus("pipe");
  read_end_ = Fd(ends[0]);
  std::thread([pipe = Fd(ends[1])] { WaitForSignals(pipe); }).detach();
  return absl::OkStatus();
}

Signals::Seen Signals::Take() {
  Seen seen;
  char byte = 0;
  while (::read(read_end_.get(), &byte, 1) == 1) {
    seen.terminate = seen.terminate || byte == SIGTERM;
    seen.interrupt = seen.interrupt || byte == SIGINT;
    seen.reload = seen.reload || byte == SIGHUP;
  }
  return seen;
}

void Signals::SetGrace(absl::Duration grace, int code) {
  grace_ms = absl::ToInt64Milliseconds(grace);
  exit_code = code;
}

void Signals::LiftDeadline() { deadline_lifted = true; }

void HoldSignals() {
  const sigset_t set = Taken();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void ResetSignals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace vfio_agent
