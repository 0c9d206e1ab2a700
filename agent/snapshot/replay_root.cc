#include "agent/snapshot/replay_root.h"

#include <ftw.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/commands.h"
#include "agent/exit_code.h"
#include "agent/snapshot/archive.h"
#include "agent/snapshot/snapshot.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr int kMostOpen = 16;
// What ends a command from outside or, to the daemon, means something.
constexpr std::array kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

int RemoveOne(const char* path, const struct stat* /*facts*/, int /*type*/, FTW* /*place*/) {
  return std::remove(path);
}

class UnpackedRoot {
 public:
  ~UnpackedRoot() {
    if (path_.empty() || ::nftw(path_.c_str(), RemoveOne, kMostOpen, FTW_DEPTH | FTW_PHYS) == 0) {
      return;
    }
    PrintError(absl::StrFormat("%s could not be removed", path_));
  }
  UnpackedRoot() = default;
  UnpackedRoot(const UnpackedRoot&) = delete;
  UnpackedRoot& operator=(const UnpackedRoot&) = delete;

  absl::Status Unpack(const std::string& file) {
    const char* const parent = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    std::string name = absl::StrFormat("%s/vfio-agent-root-XXXXXX",
                                       parent == nullptr || *parent == '\0' ? "/tmp" : parent);
    if (::mkdtemp(name.data()) == nullptr) {
      return ErrnoStatus(absl::StrFormat("a directory to unpack to (TMPDIR): mkdir %s", name));
    }
    path_ = name;
    return UnpackArchive(file, path_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool IsFile(const std::string& path) {
  struct stat facts = {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

// A relative root is where this process started: a snapshot's settings want whole paths.
std::string WholePath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr),
                                                          std::free);
  return whole == nullptr ? path : std::string(whole.get());
}

void UseOwnOfSnapshot(Invocation& invocation) {
  const std::string root = WholePath(invocation.root);
  if (!IsFile(root + "/" + kAboutFile)) return;
  const std::string config = root + kDefaultConfigFile;
  if (invocation.config_file == kDefaultConfigFile && IsFile(config)) {
    invocation.config_file = config;
  }
  invocation.flags.try_emplace("state-dir", root + kDefaultStateDir);
  invocation.flags.try_emplace("pci-ids", root + kDefaultPciIds);
}

// `handed` is blocked since before the fork, so that none is lost.
int WaitHandingOn(pid_t child, const sigset_t& handed) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return kExitFailed;
    // What the terminal sends reaches the child as well; what a process sends came here alone.
    siginfo_t sent = {};
    const int number = ::sigwaitinfo(&handed, &sent);
    if (number > 0 && number != SIGCHLD && sent.si_code <= 0) ::kill(child, number);
  }
}

int RunInChild(const std::function<int()>& run) {
  sigset_t handed, before;
  ::sigemptyset(&handed);
  for (const int number : kHandedOn) ::sigaddset(&handed, number);
  ::sigaddset(&handed, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &handed, &before);
  // Who started this process may have it ignored: the child's end would not be told then.
  ::signal(SIGCHLD, SIG_DFL);  // NOLINT(cert-err33-c): it fails for no such number
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) {
    PrintError(Message(ErrnoStatus("fork")));
    return kExitFailed;
  }
  if (child > 0) return WaitHandingOn(child, handed);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  const int exit_code = run();
  std::cout.flush();
  ::_exit(std::cout || exit_code != kExitDone ? exit_code : kExitFailed);
}

}  // namespace

int WithRoot(Invocation& invocation, const std::function<int()>& run) {
  if (invocation.root == "/") return run();
  UnpackedRoot root;
  const bool archive = IsFile(invocation.root);
  if (archive) {
    if (const absl::Status status = root.Unpack(invocation.root); !status.ok()) {
      PrintError("--root: " + Message(status));
      return kExitFailed;
    }
    invocation.root = root.path();
  }
  UseOwnOfSnapshot(invocation);
  return archive ? RunInChild(run) : run();
}

}  // namespace vfio_agent
