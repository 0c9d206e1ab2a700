// ApiFault: what the fake API server does wrong, to which requests and how often.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "test/apiserver/http_wire.h"

namespace vfio_agent {

struct ApiFault {
  static constexpr int kAlways = -1;

  // Which requests; empty is any.
  std::string method;
  std::string path;           // the beginning of it
  std::string query;          // a part of it
  std::optional<bool> watch;  // watches only, or all but them
  int times = 1;

  // What happens, one or several of these.
  int code = 0;  // instead of the true answer; with `body`, or a Status of that code
  std::string body;
  int retry_after = 0;             // seconds, with `code`
  std::string location;            // with `code`
  absl::Duration delay;            // before the answer
  bool hang = false;               // no answer at all
  std::optional<size_t> cut;       // the connection is gone after so many bytes of answer
  std::optional<std::string> say;  // the stream of a watch begins with this text

  bool Fits(const HttpCall& call, bool is_watch) const {
    return times != 0 && (method.empty() || method == call.method) && call.path.starts_with(path) &&
           call.query.find(query) != std::string::npos && watch.value_or(is_watch) == is_watch;
  }
};

}  // namespace vfio_agent
