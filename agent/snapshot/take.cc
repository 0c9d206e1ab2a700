#include "agent/snapshot/take.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "agent/snapshot/frames.h"
#include "agent/snapshot/snapshot.h"
#include "agent/work/child.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr int kMostHangs = 8;  // of one fact

void Send(int fd, const Frame& frame) {
  const std::string text = FrameToText(frame);
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) ::_exit(1);  // the parent has given up
    if (n > 0) at += static_cast<size_t>(n);
  }
}

[[noreturn]] void ReadInChild(int pipe, const std::string& root, const FactToTake& fact,
                              const Replay& known) {
  LeaveParent({pipe}, kLookRights);
  const auto begin = [pipe](const ReadQuestion& question) {
    Send(pipe, {.type = Frame::Type::kBegin,
                .reading = {.kind = question.first, .path = question.second}});
  };
  const auto end = [pipe](const Reading& reading) {
    Send(pipe, {.type = Frame::Type::kEnd, .reading = reading});
  };
  const absl::StatusOr<Tree> tree = Tree::OpenRecorded(root, {.begin = begin, .end = end}, known);
  if (!tree.ok()) ::_exit(1);
  fact.take(*tree);
  Send(pipe, {.type = Frame::Type::kDone});
  ::_exit(0);
}

// One child's work as its parent sees it.
class Reader {
 public:
  enum class End { kDone, kHangs, kBroken };

  Reader(RecordingBuilder& builder, const Progress& progress)
      : builder_(builder), progress_(progress) {}

  End Run(const std::string& root, const FactToTake& fact, const Replay& known) {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return End::kBroken;
    const Fd read_end(ends[0]);
    Fd write_end(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return End::kBroken;
    if (pid == 0) ReadInChild(write_end.get(), root, fact, known);
    write_end = Fd();
    const End end = Receive(read_end.get(), fact.patience);
    if (end == End::kHangs) {
      ::kill(pid, SIGKILL);  // takes it when the kernel lets it go
    } else {
      ::waitpid(pid, nullptr, 0);
    }
    return end;
  }

  // The read that was begun and has not ended.
  const std::optional<ReadQuestion>& open() const { return open_; }
  const std::string& last() const { return last_; }

 private:
  End Receive(int fd, absl::Duration patience) {
    std::string buffer;
    std::array<char, size_t{64} * 1024> part;
    for (;;) {
      pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
      const int n = ::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(patience)));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) return End::kHangs;
      const ssize_t size = ::read(fd, part.data(), part.size());
      if (size <= 0) return done_ ? End::kDone : End::kBroken;
      buffer.append(part.data(), static_cast<size_t>(size));
      size_t at = 0;
      while (const std::optional<Frame> frame = TakeFrame(buffer, at)) Use(*frame);
      buffer.erase(0, at);
    }
  }

  void Use(const Frame& frame) {
    if (frame.type == Frame::Type::kDone) {
      done_ = true;
      return;
    }
    last_ = frame.reading.path;
    if (frame.type == Frame::Type::kBegin) {
      open_ = ReadQuestion(frame.reading.kind, frame.reading.path);
      if (progress_) progress_(last_);
      return;
    }
    open_.reset();
    builder_.Add(frame.reading);
  }

  RecordingBuilder& builder_;
  const Progress& progress_;
  std::optional<ReadQuestion> open_;
  std::string last_;
  bool done_ = false;
};

// What is missing then is unknown, not none.
std::string GiveUp(const FactToTake& fact, const std::string& last, RecordingBuilder& builder) {
  builder.Add({.kind = ReadKind::kHidden, .path = "descriptors", .text = "yes"});
  return fact.name + (kGivenUpAfter + (last.empty() ? "no answer" : last));
}

// `known`: what hung before, also for another fact: it is not tried again.
void TakeFact(const std::string& root, const FactToTake& fact, const Progress& progress,
              Replay& known, RecordingBuilder& builder, Taken& taken) {
  for (int hangs = 0; hangs <= kMostHangs; ++hangs) {
    Reader reader(builder, progress);
    const Reader::End end = reader.Run(root, fact, known);
    if (end == Reader::End::kDone) return;
    if (end == Reader::End::kBroken || !reader.open() || hangs == kMostHangs) {
      taken.unfinished.push_back(GiveUp(fact, reader.last(), builder));
      return;
    }
    const ReadQuestion& question = *reader.open();
    const absl::Status status = ErrnoStatus(ETIMEDOUT, absl::StrFormat("read %s", question.second));
    known.failures[question] = status;
    builder.Add({.kind = question.first, .path = question.second, .status = status});
  }
}

}  // namespace

absl::StatusOr<Taken> TakeRecording(const Tree& tree, std::span<const FactToTake> facts,
                                    const Progress& progress) {
  ASSIGN_OR_RETURN(const Tree links, Tree::Open(tree.root()));
  RecordingBuilder builder(links);
  Taken taken;
  Replay known;
  for (const FactToTake& fact : facts) {
    TakeFact(tree.root(), fact, progress, known, builder, taken);
  }
  taken.recording = std::move(builder).Finish();
  return taken;
}

}  // namespace vfio_agent
