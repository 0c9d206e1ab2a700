// Answers: what Allocate answered about each unit, kept on disk over restarts and reboots.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "deviceplugin/offer/ledger.h"

namespace vfio_agent {

// One file, "answers.json" below the state directory. One thread.
class AnswersFile {
 public:
  explicit AnswersFile(const std::string& state_dir)
      : dir_(state_dir), path_(state_dir + "/answers.json") {}

  const std::string& path() const { return path_; }

  // None where there is no file. DataLoss where it cannot be understood. Writes nothing.
  absl::StatusOr<Answers> Look() const;
  // None where there is no file. DataLoss where it cannot be understood: it is then renamed to
  // "answers.json.aside", and nothing is known of earlier answers.
  absl::StatusOr<Answers> Read() const;
  absl::Status Write(const Answers& answers) const;

 private:
  std::string dir_;
  std::string path_;
};

// The file's text. DataLoss for text that is none.
std::string AnswersToText(const Answers& answers);
absl::StatusOr<Answers> ParseAnswers(const std::string& text);

}  // namespace vfio_agent
