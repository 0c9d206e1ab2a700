#include "agent/config/listen_address.h"

#include <arpa/inet.h>

#include <array>
#include <cctype>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {

absl::Status CheckListen(const std::string& listen) {
  if (listen.empty()) return absl::OkStatus();
  const size_t colon = listen.rfind(':');
  int port = -1;
  std::array<unsigned char, sizeof(in6_addr)> unused = {};
  bool good = colon != std::string::npos && colon + 1 < listen.size() &&
              std::isdigit(static_cast<unsigned char>(listen[colon + 1])) != 0 &&
              absl::SimpleAtoi(listen.substr(colon + 1), &port) && port <= 65535;
  std::string host = good ? listen.substr(0, colon) : "";
  if (good && host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    good = ::inet_pton(AF_INET6, host.c_str(), unused.data()) == 1;
  } else if (good && !host.empty()) {
    good = ::inet_pton(AF_INET, host.c_str(), unused.data()) == 1;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s': want ADDRESS:PORT with a numeric address, such as 127.0.0.1:9431, "
                      ":PORT for all addresses, or nothing",
                      listen));
}

}  // namespace vfio_agent
