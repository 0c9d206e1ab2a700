#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "agent/commands.h"
#include "agent/doctor/report.h"
#include "agent/exit_code.h"

namespace vfio_agent {
namespace {

// A command has one thread while it looks at these.
// NOLINTBEGIN(concurrency-mt-unsafe)
TextStyle StyleOf(Output output) {
  const char* const no_colour = std::getenv("NO_COLOR");
  const bool plain = no_colour != nullptr && *no_colour != '\0';
  return {
      .symbols = IsUtf8Locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG")),
      .colours = !plain && ::isatty(STDOUT_FILENO) == 1,
      .width = output == Output::kWide ? size_t{0} : size_t{100}};
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

int DoctorCommand(Session& session) {
  const Diagnosis diagnosis = Diagnose(TakeDoctorFacts(session));
  const Output output = session.invocation().output;
  if (IsDocument(output)) {
    PrintDocument(DiagnosisToJson(diagnosis), output);
  } else {
    std::cout << DiagnosisToText(diagnosis, StyleOf(output));
  }
  return diagnosis.causes.empty() ? kExitDone : kExitRefused;
}

}  // namespace vfio_agent
