#include "test/command_line/beside.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "absl/strings/str_replace.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

struct Ends {
  Fd ours;
  Fd theirs;
};

Ends OpenEnds(const Beside::Where& where) {
  int ours = -1, theirs = -1;
  if (where.terminal) {
    const winsize size = {.ws_row = where.rows, .ws_col = where.columns};
    if (::openpty(&ours, &theirs, nullptr, nullptr, &size) != 0) std::abort();
    ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  } else {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    ours = ends[0];
    theirs = ends[1];
  }
  ::fcntl(ours, F_SETFL, O_NONBLOCK);
  return {.ours = Fd(ours), .theirs = Fd(theirs)};
}

// In the child; between fork and exec.
[[noreturn]] void Become(std::vector<char*>& words, int output, const Beside::Where& where) {
  ::setsid();
  if (where.terminal) ::ioctl(output, TIOCSCTTY, 0);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::setenv("TERM", where.type.c_str(), 1);
  if (where.no_color) {
    ::setenv("NO_COLOR", "1", 1);
  } else {
    ::unsetenv("NO_COLOR");
  }
  ::execv(VFIO_AGENT, words.data());
  ::_exit(127);
}

}  // namespace

Beside::Beside(std::vector<std::string> words, const Where& where) {
  Ends ends = OpenEnds(where);
  words.insert(words.begin(), VFIO_AGENT);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) Become(pointers, ends.theirs.get(), where);
  reader_ = std::move(ends.ours);
}

Beside::~Beside() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Beside::Output() {
  std::array<char, 4096> buffer = {};
  for (ssize_t n = 0; (n = ::read(reader_.get(), buffer.data(), buffer.size())) > 0;) {
    output_.append(buffer.data(), static_cast<size_t>(n));
  }
  return absl::StrReplaceAll(output_, {{"\r\n", "\n"}});
}

bool Beside::WaitFor(const std::string& text, absl::Duration limit) {
  return Eventually([&] { return Output().find(text) != std::string::npos; }, limit);
}

void Beside::Signal(int number) const { ::kill(pid_, number); }

int Beside::WaitForEnd(absl::Duration limit) {
  int status = 0;
  const bool ended = Eventually(
      [&] {
        Output();  // or it would wait for room
        return ::waitpid(pid_, &status, WNOHANG) == pid_;
      },
      limit);
  if (!ended) return -1;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace vfio_agent
