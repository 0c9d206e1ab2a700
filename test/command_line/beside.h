// Runs the real vfio-agent beside the test, with a terminal or a pipe for its output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

class Beside {
 public:
  struct Where {
    bool terminal = true;
    unsigned short columns = 100;  // 0: it does not say
    unsigned short rows = 40;
    std::string type = "xterm";  // TERM
    bool no_color = false;       // NO_COLOR
  };

  Beside(std::vector<std::string> words, const Where& where);
  ~Beside();
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Waits until its output has `text`; false where it does not within the limit.
  bool WaitFor(const std::string& text, absl::Duration limit = absl::Seconds(20));
  // All output so far, both standard streams; a terminal's line ends are made plain.
  std::string Output();
  void Signal(int number) const;
  // Waits for its end: the exit code, 128 + n for a signal, -1 where it is still there.
  int WaitForEnd(absl::Duration limit = absl::Seconds(20));

 private:
  Fd reader_;
  pid_t pid_ = -1;
  std::string output_;
};

}  // namespace vfio_agent
