#include "test/conformance/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent::conformance {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<Process> Process::Start(std::vector<std::string> command,
                                       std::vector<std::string> environment,
                                       const std::string& output) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, command.front().c_str(), &actions, nullptr,
                                   Pointers(command).data(), Pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(error, absl::StrFormat("cannot start %s", command.front()));
  return Process(pid);
}

Process::~Process() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_code_(other.exit_code_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

void Process::Signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::optional<int> Process::WaitForEnd(absl::Duration limit) {
  if (pid_ < 0) return exit_code_;
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd wait = {.fd = handle.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) <= 0) return {};
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return {};
  pid_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

}  // namespace vfio_agent::conformance
