// SimMount: a sim-node process of a test's own, mounted on a temporary directory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sysfs/fd.h"

namespace vfio_agent::sim {

class SimMount {
 public:
  // Starts it with `arguments` ("--machine", FILE, ...) and waits until the tree can be read.
  static absl::StatusOr<std::unique_ptr<SimMount>> Start(std::vector<std::string> arguments);

  // Unmounts. The process would also end if this one died: it watches its standard input.
  ~SimMount();
  SimMount(const SimMount&) = delete;
  SimMount& operator=(const SimMount&) = delete;
  SimMount(SimMount&&) = delete;
  SimMount& operator=(SimMount&&) = delete;

  const std::string& root() const { return root_; }

  // By plain open, read and write below the root. Write gives 0 or an errno.
  absl::StatusOr<std::string> Read(const std::string& path) const;
  int Write(const std::string& path, std::string_view text) const;
  int Control(std::string_view command) const { return Write(".control", command); }

  // Ends the process's standard input.
  void CloseInput() { input_ = Fd(); }

  // Ends the process by `signal` (0: it ends by itself), waits for it and gives its exit code; 128
  // + n for a signal.
  int Stop(int signal);

 private:
  SimMount() = default;

  std::string root_;
  pid_t process_ = -1;
  Fd input_;
};

}  // namespace vfio_agent::sim
