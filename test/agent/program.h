// Runs the real vfio-agent binary: once to its end, or as a daemon beside the test.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

struct ProgramResult {
  int exit_code = -1;  // 128 + n for a signal
  std::string out;
  std::string err;
};

// Runs `vfio-agent <arguments>` to its end. `environment`: "NAME=value", added to the test's own.
// `inside`: a command that runs it, the program by its path.
ProgramResult RunAgent(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment = {},
                       const std::vector<std::string>& inside = {});

// `vfio-agent run` with its log in a file of its own; killed when the object goes.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> arguments, const std::vector<std::string>& inside = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // Waits for its end: the exit code, or -1 where it is still there after `limit`.
  int WaitForEnd(absl::Duration limit);

  std::string Log() const;
  // Waits until a line of the log has all of `parts`; the first such line, or "".
  std::string WaitForLine(const std::vector<std::string>& parts, absl::Duration limit) const;
  // How many lines have all of `parts`.
  int CountLines(const std::vector<std::string>& parts) const;

 private:
  std::string log_path_;
  pid_t pid_ = -1;
};

// A directory of the test's own that goes away with the object; short enough for sockets.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  const std::string& path() const { return path_; }
  // Writes `text` to a file of that name and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

// Polls `condition` until it holds. False where it does not within `limit`.
template <typename Condition>
bool Eventually(const Condition& condition, absl::Duration limit);

// Sleeps for one poll of Eventually().
void PollPause();

template <typename Condition>
bool Eventually(const Condition& condition, absl::Duration limit) {
  constexpr absl::Duration kPause = absl::Milliseconds(10);
  for (absl::Duration waited; waited <= limit; waited += kPause) {
    if (condition()) return true;
    PollPause();
  }
  return condition();
}

}  // namespace vfio_agent
