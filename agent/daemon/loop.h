// Loop: waits on descriptors and a deadline; everything of the daemon happens on its thread.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

class Loop {
 public:
  using Callback = std::function<void()>;

  // Unavailable where the kernel gives no eventfd.
  absl::Status Open();

  // `callback` runs whenever `fd` is readable. The descriptor stays the caller's.
  void Watch(int fd, Callback callback);

  // Makes the loop turn once more. From any thread.
  void Wake();

  void Stop() { stopped_ = true; }

  // Each turn: waits for a descriptor, a Wake() or until `deadline()`, runs the callbacks, then
  // `turn`. Until Stop(); may be run again then.
  void Run(const std::function<absl::Time()>& deadline, const Callback& turn);

 private:
  struct Watched {
    int fd = -1;
    Callback callback;
  };
  void WaitOnce(absl::Time deadline);

  Fd wake_;
  std::vector<Watched> watched_;
  bool stopped_ = false;
};

}  // namespace vfio_agent
