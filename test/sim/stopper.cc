#include "test/sim/stopper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace vfio_agent::sim {
namespace {

constexpr int kInterrupt = SIGUSR1;
constexpr int kInterruptEveryMs = 20;

sigset_t EndingSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// Whether standard input has ended; what is written to it is thrown away.
bool InputEnded() {
  char buffer[256];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

}  // namespace

Stopper::Stopper(bool at_eof) : at_eof_(at_eof), loop_thread_(::pthread_self()) {
  const sigset_t ending = EndingSignals();
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  signals_ = Fd(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  finish_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: it ends a sem_wait
  ::sigaction(kInterrupt, &action, nullptr);
}

Stopper::~Stopper() { Finish(); }

void Stopper::AskToStop() { ::kill(::getpid(), SIGTERM); }

void Stopper::Start(std::function<void()> stop) {
  stop_ = std::move(stop);
  thread_ = std::thread([this] { Wait(); });
}

void Stopper::Wait() {
  pollfd waits[] = {{signals_.get(), POLLIN, 0},
                    {finish_.get(), POLLIN, 0},
                    {at_eof_ ? STDIN_FILENO : -1, POLLIN, 0}};
  bool ended = false;
  while (!ended && !finished_) {
    if (::poll(waits, std::size(waits), -1) < 0) continue;
    ended = waits[0].revents != 0 || (waits[2].revents != 0 && InputEnded());
  }
  if (!ended) return;
  stop_();
  pollfd finished{finish_.get(), POLLIN, 0};
  while (!finished_) {
    ::pthread_kill(loop_thread_, kInterrupt);
    ::poll(&finished, 1, kInterruptEveryMs);
  }
}

void Stopper::Finish() {
  if (!thread_.joinable()) return;
  finished_ = true;
  const uint64_t one = 1;
  // Cannot fail: the counter is far from full. The thread also looks at finished_.
  [[maybe_unused]] const ssize_t written = ::write(finish_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace vfio_agent::sim
