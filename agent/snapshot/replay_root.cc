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
#include <memory>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/snapshot/archive.h"
#include "agent/snapshot/own_files.h"
#include "agent/snapshot/snapshot.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr int kMostOpen = 16;
// What ends a command from outside or, to the daemon, means something.
constexpr std::array kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

std::optional<WorkedOn> worked_on;  // of a child: set once, before it does anything

int RemoveOne(const char* path, const struct stat* /*facts*/, int /*type*/, FTW* /*place*/) {
  return std::remove(path);
}

// A directory for this user alone that goes away with what is in it.
class OwnPlace {
 public:
  ~OwnPlace() {
    if (path_.empty() || ::nftw(path_.c_str(), RemoveOne, kMostOpen, FTW_DEPTH | FTW_PHYS) == 0) {
      return;
    }
    PrintError(absl::StrFormat("%s could not be removed", path_));
  }
  OwnPlace() = default;
  OwnPlace(const OwnPlace&) = delete;
  OwnPlace& operator=(const OwnPlace&) = delete;

  absl::Status Make() {
    const char* const given = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    const char* const parent = given == nullptr || *given == '\0' ? "/tmp" : given;
    // A relative one is where this process started: settings want whole paths.
    const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(parent, nullptr), std::free);
    std::string name =
        absl::StrFormat("%s/vfio-agent-root-XXXXXX", whole == nullptr ? parent : whole.get());
    if (::mkdtemp(name.data()) == nullptr) {
      return ErrnoStatus(absl::StrFormat("a directory to unpack to (TMPDIR): mkdir %s", name));
    }
    path_ = name;
    return absl::OkStatus();
  }

  absl::Status Unpack(const std::string& file) const {
    if (::mkdir(unpacked().c_str(), 0700) != 0) {
      return ErrnoStatus(absl::StrFormat("mkdir %s", unpacked()));
    }
    return UnpackArchive(file, unpacked());
  }

  const std::string& path() const { return path_; }
  std::string unpacked() const { return path_ + "/root"; }

 private:
  std::string path_;
};

bool IsFile(const std::string& path) {
  struct stat facts = {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

// Unpacked by somebody else.
bool IsSnapshot(const std::string& directory) {
  const absl::StatusOr<Tree> tree = Tree::Open(directory);
  return tree.ok() && tree->Exists(kAboutFile);
}

// What nobody has set by flag is the snapshot's.
WorkedOn UseOwnFiles(const std::string& place, Invocation& invocation) {
  if (invocation.config_file == kDefaultConfigFile) invocation.config_file = place + kOwnConfigFile;
  invocation.flags.try_emplace("pci-ids", place + kOwnPciIds);
  return {.own_state_dir = invocation.flags.try_emplace("state-dir", place + kOwnStateDir).second};
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

int TellRoot(const absl::Status& status, std::string_view what, int exit_code) {
  PrintError(absl::StrFormat("%s: %s", what, Message(status)));
  return exit_code;
}

// In the child.
int RunOnRoot(bool archive, const OwnPlace& place, Invocation& invocation,
              const std::function<int()>& run) {
  const std::string named = "--root: " + invocation.root;
  if (archive) {
    const absl::Status status = place.Unpack(invocation.root);
    if (!status.ok()) return TellRoot(status, "--root", kExitFailed);
    invocation.root = place.unpacked();
  }
  const absl::StatusOr<std::vector<std::string>> notes =
      CopyOwnFiles(invocation.root, place.path());
  if (!notes.ok()) {
    const bool config = absl::IsInvalidArgument(notes.status());
    return TellRoot(notes.status(), named, config ? kExitUsage : kExitFailed);
  }
  for (const std::string& note : *notes) PrintError(absl::StrFormat("%s: %s", named, note));
  worked_on = UseOwnFiles(place.path(), invocation);
  return run();
}

}  // namespace

std::optional<WorkedOn> WorkedSnapshot() { return worked_on; }

int WithRoot(Invocation& invocation, const std::function<int()>& run) {
  if (invocation.root == "/") return run();
  const bool archive = IsFile(invocation.root);
  if (!archive && !IsSnapshot(invocation.root)) return run();
  OwnPlace place;
  const absl::Status made = place.Make();
  if (!made.ok()) return TellRoot(made, "--root", kExitFailed);
  // The child unpacks too: what ends it in the middle of that leaves its place to this process.
  return RunInChild([&] { return RunOnRoot(archive, place, invocation, run); });
}

}  // namespace vfio_agent
