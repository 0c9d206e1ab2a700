// HTTP/1.1 as far as the fake API server speaks it.
#pragma once

#include <optional>
#include <string>

namespace vfio_agent {

struct HttpCall {
  std::string method;
  std::string path;
  std::string query;  // without the question mark, not decoded
  std::string type;   // Content-Type
  std::string token;  // of "Authorization: Bearer"
  std::string body;
};

// Takes one whole request off the front of `bytes`; nullopt while there is none.
std::optional<HttpCall> TakeCall(std::string& bytes);

// A whole answer. `retry_after` 0, `location` empty: no such header.
std::string HttpAnswerText(int code, const std::string& body, int retry_after = 0,
                           const std::string& location = "");
// The head of a watch, and one piece of it.
std::string StreamHead();
std::string Chunk(const std::string& text);
// What ends it in order.
std::string LastChunk();

}  // namespace vfio_agent
