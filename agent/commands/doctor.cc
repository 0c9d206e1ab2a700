#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "agent/commands/commands.h"
#include "agent/doctor/report.h"
#include "agent/exit_code.h"
#include "agent/text/terminal.h"

namespace vfio_agent {
namespace {

// A command has one thread while it looks at these.
// NOLINTBEGIN(concurrency-mt-unsafe)
TextStyle StyleOf(const Invocation& invocation) {
  return {
      .symbols = IsUtf8Locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG")),
      .colours = UsesColour(invocation.colour, STDOUT_FILENO),
      .width = invocation.output == Output::kWide ? size_t{0} : TextWidth()};
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

int DoctorCommand(Session& session) {
  const Diagnosis diagnosis = Diagnose(TakeDoctorFacts(session));
  const Output output = session.invocation().output;
  if (IsDocument(output)) {
    PrintDocument(DiagnosisToJson(diagnosis), output);
  } else {
    std::cout << DiagnosisToText(diagnosis, StyleOf(session.invocation()));
  }
  return diagnosis.causes.empty() ? kExitDone : kExitRefused;
}

}  // namespace vfio_agent
