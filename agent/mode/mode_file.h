// ModeFile: the mode that was in force last, on disk, for an agent that starts while nobody can say
// which one is wanted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/mode/mode_switch.h"

namespace vfio_agent {

// One file, "mode.json" below the state directory. Untrusted: what does not check says nothing. One
// thread.
class ModeFile {
 public:
  explicit ModeFile(const std::string& state_dir)
      : dir_(state_dir), path_(state_dir + "/mode.json") {}

  // nullopt where there is no file. DataLoss: it cannot be understood; the next Write() replaces
  // it. Writes nothing.
  absl::StatusOr<std::optional<ModeMemory>> Read() const;
  absl::Status Write(const ModeMemory& memory) const;

 private:
  std::string dir_;
  std::string path_;
};

// The file's text. DataLoss for text that is none.
std::string ModeMemoryToText(const ModeMemory& memory);
absl::StatusOr<ModeMemory> ParseModeMemory(std::string_view text);

}  // namespace vfio_agent
