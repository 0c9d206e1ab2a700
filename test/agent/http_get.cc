#include "test/agent/http_get.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

namespace vfio_agent {

Fd ConnectTo(int port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return socket;
}

HttpAnswer HttpGet(int port, const std::string& path, const std::string& method) {
  const Fd socket = ConnectTo(port);
  if (!socket.valid()) return {};
  const std::string request = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(socket.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  HttpAnswer answer;
  if (std::sscanf(text.c_str(), "HTTP/1.1 %d ", &answer.code) != 1) return {};
  const size_t end = text.find("\r\n\r\n");
  if (end != std::string::npos) answer.body = text.substr(end + 4);
  return answer;
}

}  // namespace vfio_agent
