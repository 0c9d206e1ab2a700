#include "test/apiserver/http_wire.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr char kBearer[] = "Bearer ";

std::map<std::string, std::string> Headers(std::istringstream& in) {
  std::map<std::string, std::string> headers;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      headers[absl::AsciiStrToLower(line.substr(0, colon))] = line.substr(colon + 2);
    }
  }
  return headers;
}

}  // namespace

std::optional<HttpCall> TakeCall(std::string& bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  std::istringstream in(bytes.substr(0, end));
  HttpCall call;
  std::string target;
  std::string first;
  std::getline(in, first);
  std::istringstream(first) >> call.method >> target;
  std::map<std::string, std::string> headers = Headers(in);
  const size_t length = std::strtoul(headers["content-length"].c_str(), nullptr, 10);
  if (bytes.size() < end + 4 + length) return std::nullopt;
  call.body = bytes.substr(end + 4, length);
  bytes.erase(0, end + 4 + length);
  const size_t question = target.find('?');
  call.path = target.substr(0, question);
  if (question != std::string::npos) call.query = target.substr(question + 1);
  call.type = headers["content-type"];
  const std::string authorization = headers["authorization"];
  if (authorization.starts_with(kBearer)) call.token = authorization.substr(sizeof(kBearer) - 1);
  return call;
}

std::string HttpAnswerText(int code, const std::string& body, int retry_after,
                           const std::string& location) {
  std::string more;
  if (retry_after > 0) more += absl::StrFormat("Retry-After: %d\r\n", retry_after);
  if (!location.empty()) more += absl::StrFormat("Location: %s\r\n", location);
  return absl::StrFormat(
      "HTTP/1.1 %d Said\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", code,
      more, body.size(), body);
}

std::string StreamHead() {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
}

std::string Chunk(const std::string& text) {
  return absl::StrFormat("%x\r\n%s\r\n", text.size(), text);
}

std::string LastChunk() { return "0\r\n\r\n"; }

}  // namespace vfio_agent
