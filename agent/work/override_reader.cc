#include "agent/work/override_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <span>

#include "agent/work/child.h"
#include "sysfs/clock.h"
#include "sysfs/fd.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// One device's answer; smaller than PIPE_BUF, so that each arrives whole.
struct Answer {
  int32_t error = 0;  // errno; ENOENT: no such attribute
  std::array<char, 500> text = {};
};

[[noreturn]] void ReadInChild(int pipe, const std::string& root,
                              std::span<const PciAddress> devices) {
  LeaveParent({pipe}, kNoRights);
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  for (const PciAddress& device : devices) {
    const absl::StatusOr<std::string> text = tree.ok() ? tree->ReadText(OverridePath(device))
                                                       : absl::StatusOr<std::string>(tree.status());
    Answer answer;
    if (text.ok()) {
      text->copy(answer.text.data(), answer.text.size() - 1);
    } else {
      answer.error = ErrnoOf(text.status()) != 0 ? ErrnoOf(text.status()) : EIO;
    }
    if (::write(pipe, &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) break;
  }
  ::_exit(0);
}

struct ReadingChild {
  pid_t pid = -1;
  Fd answers;
};

ReadingChild StartChild(const std::string& root, std::span<const PciAddress> devices) {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  ReadingChild child{.answers = Fd(ends[0])};
  const Fd write_end(ends[1]);
  child.pid = ::fork();
  if (child.pid == 0) ReadInChild(write_end.get(), root, devices);
  return child;
}

bool NextAnswer(const ReadingChild& child, absl::Duration patience, Answer& answer) {
  const absl::Time end = MonotonicNow() + patience;
  pollfd ready = {.fd = child.answers.get(), .events = POLLIN, .revents = 0};
  for (absl::Duration left = patience; left > absl::ZeroDuration(); left = end - MonotonicNow()) {
    const int n = ::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (n < 0 && errno == EINTR) continue;
    return n > 0 && ::read(ready.fd, &answer, sizeof answer) == static_cast<ssize_t>(sizeof answer);
  }
  return false;
}

Fact<std::string> FactOf(const Answer& answer) {
  if (answer.error == ENOENT) return Fact<std::string>::Absent();
  if (answer.error != 0) return Fact<std::string>::Unknown(answer.error);
  return Fact<std::string>(answer.text.data());
}

}  // namespace

void OverrideReader::Reap() {
  std::erase_if(stuck_,
                [](const auto& entry) { return ::waitpid(entry.second, nullptr, WNOHANG) != 0; });
}

std::map<PciAddress, Fact<std::string>> OverrideReader::Read(const std::string& root,
                                                             const std::vector<PciAddress>& devices,
                                                             absl::Duration patience) {
  Reap();
  std::map<PciAddress, Fact<std::string>> facts;
  std::vector<PciAddress> wanted;
  for (const PciAddress& device : devices) {
    facts[device] = Fact<std::string>::Unknown(ETIMEDOUT);
    if (!stuck_.contains(device)) wanted.push_back(device);
  }
  std::span<const PciAddress> left = wanted;
  while (!left.empty()) {
    const ReadingChild child = StartChild(root, left);
    if (child.pid < 0) return facts;  // no child, no answer: unknown
    Answer answer;
    while (!left.empty() && NextAnswer(child, patience, answer)) {
      facts[left.front()] = FactOf(answer);
      left = left.subspan(1);
    }
    if (left.empty()) {
      ::waitpid(child.pid, nullptr, 0);
      break;
    }
    if (::waitpid(child.pid, nullptr, WNOHANG) == 0) {
      // It does not return, and gets the signal when the kernel lets it go.
      ::kill(child.pid, SIGKILL);
      stuck_[left.front()] = child.pid;
    } else {
      facts[left.front()] = Fact<std::string>::Unknown(EIO);
    }
    left = left.subspan(1);
  }
  return facts;
}

}  // namespace vfio_agent
