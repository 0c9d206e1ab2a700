#include "agent/cluster/api_answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/cluster/api_json.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kWords = 300;
constexpr absl::Duration kLongestPause = absl::Minutes(10);

bool IsSuccess(int code) { return code >= 200 && code < 300; }

absl::StatusCode CodeOf(int code, const std::string& reason) {
  switch (code) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case kExpired:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    default:
      return code >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kUnimplemented;
  }
}

}  // namespace

absl::Status ApiError(int code, std::string_view body) {
  const absl::StatusOr<ApiJson> json = ParseApiJson(body);
  std::string words = json.ok() ? TextAt(*json, {"message"}) : std::string(body.substr(0, kWords));
  words = Printable(words, kWords);
  const std::string reason = json.ok() ? TextAt(*json, {"reason"}) : "";
  return absl::Status(CodeOf(code, reason), words.empty()
                                                ? absl::StrFormat("HTTP %d", code)
                                                : absl::StrFormat("HTTP %d: %s", code, words));
}

ApiAnswer Judge(HttpsAnswer answer) {
  ApiAnswer judged{
      .status = std::move(answer.status), .code = answer.code, .retry_after = answer.retry_after};
  if (!judged.status.ok()) {
    judged.status = absl::Status(judged.status.code(), Printable(Message(judged.status), kWords));
    return judged;
  }
  if (IsSuccess(answer.code)) {
    judged.body = std::move(answer.body);
    return judged;
  }
  judged.status = ApiError(answer.code, answer.body);
  if (const absl::StatusOr<ApiJson> json = ParseApiJson(answer.body); json.ok()) {
    const int seconds = NumberAt(*json, {"details", "retryAfterSeconds"});
    judged.retry_after =
        std::min(std::max(judged.retry_after, absl::Seconds(seconds)), kLongestPause);
  }
  return judged;
}

}  // namespace vfio_agent
