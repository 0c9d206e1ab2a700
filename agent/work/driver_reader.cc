#include "agent/work/driver_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/work/child.h"
#include "deviceplugin/grpc/mutex.h"
#include "sysfs/clock.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// For all files together.
constexpr absl::Duration kPatience = absl::Seconds(2);
// After which the next cards are asked beside.
constexpr absl::Duration kHiccup = absl::Milliseconds(250);
constexpr absl::Duration kKillTime = absl::Milliseconds(20);
constexpr absl::Duration kFirstWait = absl::Seconds(1);
constexpr absl::Duration kLastWait = absl::Minutes(5);

using Files = std::span<const DriverFile>;

// Before each text in the pipe.
struct Head {
  int32_t error = 0;  // errno
  uint32_t size = 0;
};

bool SendAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += static_cast<size_t>(n);
  }
  return true;
}

[[noreturn]] void ReadInChild(int pipe, const std::string& root, Files files) {
  LeaveParent({pipe}, kNoRights);
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  for (const DriverFile& file : files) {
    const absl::StatusOr<std::string> text =
        tree.ok() ? tree->ReadText(file.path) : absl::StatusOr<std::string>(tree.status());
    Head head;
    if (text.ok()) head.size = static_cast<uint32_t>(text->size());
    if (!text.ok()) head.error = ErrnoOf(text.status()) != 0 ? ErrnoOf(text.status()) : EIO;
    std::string bytes(sizeof head, '\0');
    std::memcpy(bytes.data(), &head, sizeof head);
    if (text.ok()) bytes += *text;
    if (!SendAll(pipe, bytes)) break;
  }
  ::_exit(0);
}

// One child, and the files that it is to read: of the round's, from `next` to before `end`.
struct Look {
  pid_t pid = -1;
  Fd pipe;
  size_t next = 0;
  size_t end = 0;
  std::string bytes;  // of an answer that is not complete
  absl::Time heard;
};

class Round {
 public:
  Round(const std::string& root, Files files) : root_(root), files_(files) {}

  // `files` are sorted by card.
  void Run() {
    const absl::Time end = MonotonicNow() + kPatience;
    Start(0, files_.size());
    while (!looks_.empty() && MonotonicNow() < end) {
      GoAround();
      Wait(end - MonotonicNow());
      for (size_t i = looks_.size(); i-- > 0;) {
        if (!Hear(looks_[i])) looks_.erase(looks_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (Look& look : looks_) Leave(look);
  }

  DriverTexts texts;
  std::vector<const DriverFile*> silent;           // one of each card that did not answer
  std::vector<std::pair<pid_t, PciAddress>> left;  // children, and where they are

 private:
  // Where there can be no child, nobody answers.
  void Start(size_t next, size_t end) {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    Look look{.pipe = Fd(ends[0]), .next = next, .end = end, .heard = MonotonicNow()};
    const Fd write_end(ends[1]);
    look.pid = ::fork();
    if (look.pid == 0) ReadInChild(write_end.get(), root_, files_.subspan(next, end - next));
    if (look.pid > 0) looks_.push_back(std::move(look));
  }

  // The newest child has the last files.
  void GoAround() {
    Look& newest = looks_.back();
    if (newest.end != files_.size() || MonotonicNow() < newest.heard + kHiccup) return;
    size_t next = newest.next;
    while (next < newest.end && files_[next].card == files_[newest.next].card) ++next;
    if (next == newest.end) return;
    newest.end = next;
    Start(next, files_.size());
  }

  void Wait(absl::Duration most) const {
    std::vector<pollfd> pipes;
    for (const Look& look : looks_) pipes.push_back({.fd = look.pipe.get(), .events = POLLIN});
    const absl::Duration wait = std::clamp(most, absl::ZeroDuration(), kHiccup);
    ::poll(pipes.data(), pipes.size(), static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
  }

  // False once it has told all that it is to tell, or ends before that.
  bool Hear(Look& look) {
    pollfd ready = {.fd = look.pipe.get(), .events = POLLIN};
    if (::poll(&ready, 1, 0) <= 0) return true;
    std::array<char, 8192> part = {};
    const ssize_t n = ::read(look.pipe.get(), part.data(), part.size());
    if (n < 0) return errno == EINTR;
    look.bytes.append(part.data(), static_cast<size_t>(n));
    while (look.next < look.end && TakeAnswer(look)) look.heard = MonotonicNow();
    if (look.next < look.end && n > 0) return true;
    Leave(look);
    return false;
  }

  bool TakeAnswer(Look& look) {
    Head head;
    if (look.bytes.size() < sizeof head) return false;
    std::memcpy(&head, look.bytes.data(), sizeof head);
    if (look.bytes.size() < sizeof head + head.size) return false;
    const std::string& path = files_[look.next++].path;
    if (head.error != 0) {
      texts[path] = ErrnoStatus(head.error, absl::StrFormat("read %s", path));
    } else {
      texts[path] = look.bytes.substr(sizeof head, head.size);
    }
    look.bytes.erase(0, sizeof head + head.size);
    return true;
  }

  // One that has read all its own files is ended as well: it may have gone on to those of others.
  void Leave(const Look& look) {
    const bool silent_here = look.next < look.end;
    if (silent_here) silent.push_back(&files_[look.next]);
    const bool ends_by_itself = !silent_here && look.end == files_.size();
    if (!ends_by_itself) ::kill(look.pid, SIGKILL);
    if (IsGone(look.pid, ends_by_itself)) return;
    left.emplace_back(look.pid, files_[std::min(look.next, files_.size() - 1)].card);
  }

  // A killed one needs a moment, unless it is in the kernel.
  static bool IsGone(pid_t pid, bool ends_by_itself) {
    const absl::Time end = MonotonicNow() + kKillTime;
    for (;;) {
      if (::waitpid(pid, nullptr, ends_by_itself ? 0 : WNOHANG) != 0) return true;
      if (MonotonicNow() >= end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  const std::string& root_;
  const Files files_;
  std::vector<Look> looks_;
};

}  // namespace

void DriverReader::Reap() {
  std::erase_if(left_, [this](const Child& child) {
    if (::waitpid(child.pid, nullptr, WNOHANG) == 0) return false;
    const auto silent = silent_.find(child.card);
    if (silent != silent_.end()) silent->second.again = absl::InfinitePast();
    return true;
  });
}

bool DriverReader::IsToBeAsked(const PciAddress& card) const {
  if (std::ranges::count(left_, card, &Child::card) > 0) return false;
  const auto silent = silent_.find(card);
  return silent == silent_.end() || silent->second.again <= MonotonicNow();
}

void DriverReader::NoteSilent(const PciAddress& card, const std::string& file) {
  Silent& silent = silent_[card];
  silent.file = file;
  silent.wait = std::clamp(silent.wait * 2, kFirstWait, kLastWait);
  silent.again = MonotonicNow() + silent.wait;
}

DriverTexts DriverReader::Read(const std::string& root, std::vector<DriverFile> files) {
  Reap();
  std::ranges::stable_sort(files, {}, &DriverFile::card);
  std::vector<DriverFile> asked;
  std::ranges::copy_if(files, std::back_inserter(asked),
                       [this](const DriverFile& file) { return IsToBeAsked(file.card); });
  Round round(root, asked);
  if (!asked.empty()) round.Run();
  for (const auto& [pid, card] : round.left) left_.push_back({pid, card});
  std::set<PciAddress> mute;
  for (const DriverFile* const file : round.silent) {
    NoteSilent(file->card, file->path);
    mute.insert(file->card);
  }
  for (const DriverFile& file : asked) {
    if (!mute.contains(file.card) && round.texts.contains(file.path)) silent_.erase(file.card);
  }
  AddSilences(files, round.texts);
  return std::move(round.texts);
}

void DriverReader::AddSilences(const std::vector<DriverFile>& files, DriverTexts& texts) {
  answered_ = true;
  for (const DriverFile& file : files) {
    if (texts.contains(file.path)) continue;
    answered_ = false;
    const auto silent = silent_.find(file.card);
    texts[file.path] = Silence(silent == silent_.end() ? file.path : silent->second.file);
  }
}

AskDrivers AskWithDeadline(const std::string& root) {
  struct Shared {
    Mutex mutex;
    DriverReader reader ABSL_GUARDED_BY(mutex);
  };
  return [root, shared = std::make_shared<Shared>()](const std::vector<DriverFile>& files) {
    const MutexLock lock(shared->mutex);
    return shared->reader.Read(root, files);
  };
}

}  // namespace vfio_agent
