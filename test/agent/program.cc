#include "test/agent/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/time/clock.h"

namespace vfio_agent {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the binary with its output in files.
pid_t Start(std::vector<std::string> inside, const std::vector<std::string>& arguments,
            std::vector<std::string> environment, const std::string& out, const std::string& err) {
  inside.emplace_back(VFIO_AGENT);
  inside.insert(inside.end(), arguments.begin(), arguments.end());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t pid = -1;
  ::posix_spawn(&pid, inside[0].c_str(), &actions, nullptr, Pointers(inside).data(),
                Pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool HasAll(const std::string& line, const std::vector<std::string>& parts) {
  return std::ranges::all_of(
      parts, [&line](const std::string& part) { return line.find(part) != std::string::npos; });
}

}  // namespace

ProgramResult RunAgent(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment,
                       const std::vector<std::string>& inside) {
  const ScratchDir dir;
  const std::string out = dir.path() + "/out", err = dir.path() + "/err";
  const pid_t pid = Start(inside, arguments, environment, out, err);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return {};
  return {.exit_code = ExitCode(status), .out = ReadWhole(out), .err = ReadWhole(err)};
}

Daemon::Daemon(std::vector<std::string> arguments, const std::vector<std::string>& inside) {
  std::string name = (std::filesystem::temp_directory_path() / "va-log-XXXXXX").string();
  const Fd file(::mkstemp(name.data()));
  log_path_ = name;
  arguments.insert(arguments.begin(), "run");
  // Daemons run side by side: none has HTTP unless the test gives it an address.
  pid_ = Start(inside, arguments, {"VFIO_AGENT_METRICS_LISTEN="}, log_path_, log_path_);
}

Daemon::~Daemon() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::unlink(log_path_.c_str());
}

void Daemon::Signal(int number) const { ::kill(pid_, number); }

int Daemon::WaitForEnd(absl::Duration limit) {
  int status = 0;
  const bool ended = Eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit);
  if (!ended) return -1;
  pid_ = -1;
  return ExitCode(status);
}

std::string Daemon::Log() const { return ReadWhole(log_path_); }

std::string Daemon::WaitForLine(const std::vector<std::string>& parts, absl::Duration limit) const {
  std::string found;
  Eventually(
      [&] {
        std::istringstream lines(Log());
        for (std::string line; std::getline(lines, line);) {
          if (HasAll(line, parts)) found = line;
          if (!found.empty()) return true;
        }
        return false;
      },
      limit);
  return found;
}

int Daemon::CountLines(const std::vector<std::string>& parts) const {
  int count = 0;
  std::istringstream lines(Log());
  for (std::string line; std::getline(lines, line);) count += HasAll(line, parts) ? 1 : 0;
  return count;
}

ScratchDir::ScratchDir() {
  path_ = (std::filesystem::temp_directory_path() / "va-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;  // what is left below /tmp hurts nobody
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchDir::Write(const std::string& name, const std::string& text) const {
  std::string file = path_ + "/" + name;
  std::ofstream(file) << text;
  return file;
}

void PollPause() { absl::SleepFor(absl::Milliseconds(10)); }

}  // namespace vfio_agent
