// Process: a child with its output in a file, killed when the object goes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vfio_agent::conformance {

class Process {
 public:
  // `environment`: "NAME=value", added to our own. The output is appended to the file.
  static absl::StatusOr<Process> Start(std::vector<std::string> command,
                                       std::vector<std::string> environment,
                                       const std::string& output);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int number) const;
  // Its exit code (128 + n for a signal), or nothing where it still runs after `limit`.
  std::optional<int> WaitForEnd(absl::Duration limit);
  bool Runs() { return !WaitForEnd(absl::ZeroDuration()); }

 private:
  explicit Process(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;  // -1: ended
  std::optional<int> exit_code_;
};

}  // namespace vfio_agent::conformance
