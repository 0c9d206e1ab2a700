// ApiAnswer: what the API server said to one request.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/cluster/transport.h"

namespace vfio_agent {

struct ApiAnswer {
  // By code: OK (200 to 299), InvalidArgument (400, 422), Unauthenticated (401), PermissionDenied
  // (403), NotFound (404), AlreadyExists or Aborted (409), OutOfRange (410), ResourceExhausted
  // (429), Unavailable (500 and more), Unimplemented (all other). With the server's words, one
  // line of them. Without an answer: as HttpsAnswer has it.
  absl::Status status;
  int code = 0;
  std::string body;  // where the status is OK
  absl::Duration retry_after;
};

// The code of "Expired", which is told in the body of a watch as well.
inline constexpr int kExpired = 410;

ApiAnswer Judge(HttpsAnswer answer);

// What the server said, by the body of an answer that is no success: a Status of Kubernetes, or
// whatever stood in between.
absl::Status ApiError(int code, std::string_view body);

}  // namespace vfio_agent
