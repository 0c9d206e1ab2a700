// Status helpers shared by every folder. The only macros in the project.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {

// Where a Status carries the errno that it came from.
inline constexpr char kErrnoPayload[] = "vfio-agent/errno";

// `error` (an errno) as a Status whose message starts with `what`
// ("write sys/...: No such device"); ErrnoOf() gives the number back.
inline absl::Status ErrnoStatus(int error, const std::string& what) {
  absl::Status status = absl::ErrnoToStatus(error, what);
  status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(error)));
  return status;
}

// The same for the current errno. Call it before anything else can touch errno.
inline absl::Status ErrnoStatus(const std::string& what) { return ErrnoStatus(errno, what); }

// The errno behind `status`, 0 where there is none.
inline int ErrnoOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrnoPayload);
  int error = 0;
  return payload && absl::SimpleAtoi(std::string(*payload), &error) ? error : 0;
}

// A Status's message as a std::string: Debian's absl::string_view is a type of its own, which
// neither fmt nor std::string_view understands.
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Prefixes an error with where it happened; the code is kept. OK stays OK.
inline absl::Status Annotate(const absl::Status& status, const std::string& where) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrFormat("%s: %s", where, status.message()));
  if (const auto payload = status.GetPayload(kErrnoPayload)) {
    annotated.SetPayload(kErrnoPayload, *payload);
  }
  return annotated;
}

}  // namespace vfio_agent

#define VFIO_AGENT_CONCAT_(a, b) a##b
#define VFIO_AGENT_CONCAT(a, b) VFIO_AGENT_CONCAT_(a, b)

// Leaves the function with the error, if there is one.
#define RETURN_IF_ERROR(expr)                           \
  do {                                                  \
    if (absl::Status status_ = (expr); !status_.ok()) { \
      return status_;                                   \
    }                                                   \
  } while (false)

// ASSIGN_OR_RETURN(auto text, tree.ReadText(path)): names the value or leaves with the error.
// `lhs` and `tmp` are declared here, which parentheses would forbid.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(VFIO_AGENT_CONCAT(or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                      \
  if (!tmp.ok()) return tmp.status();     \
  lhs = *std::move(tmp)
// NOLINTEND(bugprone-macro-parentheses)
