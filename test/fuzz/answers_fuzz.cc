// ParseAnswers: the file of answers is understood whole or not at all, and written back as it was
// read.
#include "agent/daemon/answers.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

void Check(std::string_view view) {
  const std::string text(view);
  const absl::StatusOr<Answers> answers = ParseAnswers(text);
  const absl::StatusOr<Answers> same = ParseAnswers(text);
  Require(answers.ok() == same.ok() && (!answers.ok() || *answers == *same),
          "the same text gives the same answers", text);
  if (!answers.ok()) return RequireError(answers.status(), absl::StatusCode::kDataLoss);
  const absl::StatusOr<Answers> again = ParseAnswers(AnswersToText(*answers));
  Require(again.ok() && *again == *answers, "answers are read back as they were written", text);
}

// Answers of the fuzzer's words.
void CheckWritten(std::string_view text) {
  const std::string half(text.substr(0, text.size() / 2));
  const std::string rest(text.substr(text.size() / 2));
  const Answers answers = {{half, {.resource = rest, .group = 7, .addresses = {half, rest}}}};
  const absl::StatusOr<Answers> read = ParseAnswers(AnswersToText(answers));
  Require(read.ok() && read->size() == 1 && read->begin()->second.group == 7,
          "what was written are answers, whatever a unit is called", text);
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vfio_agent::Check(vfio_agent::Text(data, size));
  vfio_agent::CheckWritten(vfio_agent::Text(data, size));
  return 0;
}
