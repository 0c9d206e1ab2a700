#include "test/sim/mount.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "sysfs/status.h"

namespace vfio_agent::sim {
namespace {

constexpr int kReadyWithinMs = 60000;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  return Pipe{.read_end = Fd(ends[0]), .write_end = Fd(ends[1])};
}

absl::StatusOr<pid_t> Spawn(std::vector<std::string> words, const Pipe& input, const Pipe& output) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.read_end.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.write_end.get(), STDOUT_FILENO);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, SIM_NODE, &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, "start " SIM_NODE);
  return process;
}

absl::Status WaitForReady(const Fd& output) {
  std::string said;
  pollfd wait{output.get(), POLLIN, 0};
  while (said.find("ready\n") == std::string::npos) {
    if (::poll(&wait, 1, kReadyWithinMs) <= 0) {
      return absl::DeadlineExceededError("sim-node does not get ready");
    }
    char buffer[64];
    const ssize_t got = ::read(output.get(), buffer, sizeof buffer);
    if (got <= 0) {
      return absl::InternalError("sim-node ended before it was ready; it needs root and /dev/fuse");
    }
    said.append(buffer, static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SimMount>> SimMount::Start(std::vector<std::string> arguments) {
  std::unique_ptr<SimMount> mount(new SimMount);
  std::string root = (std::filesystem::temp_directory_path() / "sim-node-XXXXXX").string();
  if (::mkdtemp(root.data()) == nullptr) return ErrnoStatus("mkdtemp " + root);
  mount->root_ = root;
  ASSIGN_OR_RETURN(Pipe input, MakePipe());
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  arguments.insert(arguments.begin(), SIM_NODE);
  arguments.insert(arguments.end(), {"--mount", root, "--exit-on-eof"});
  ASSIGN_OR_RETURN(mount->process_, Spawn(std::move(arguments), input, output));
  mount->input_ = std::move(input.write_end);
  output.write_end = Fd();  // so that its end is seen
  RETURN_IF_ERROR(WaitForReady(output.read_end));
  return mount;
}

int SimMount::Stop(int signal) {
  if (process_ < 0) return -1;
  if (signal != 0) ::kill(process_, signal);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

SimMount::~SimMount() {
  Stop(SIGTERM);
  ::rmdir(root_.c_str());
}

absl::StatusOr<std::string> SimMount::Read(const std::string& path) const {
  const std::string full = root_ + "/" + path;
  const Fd file(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("open " + path);
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(file.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  if (got < 0) return ErrnoStatus("read " + path);
  return text;
}

int SimMount::Write(const std::string& path, std::string_view text) const {
  const std::string full = root_ + "/" + path;
  const Fd file(::open(full.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return errno;
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

}  // namespace vfio_agent::sim
