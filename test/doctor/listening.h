// Listening: a unix socket on which somebody listens as long as the object lives; its file stays.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "sysfs/fd.h"

namespace vfio_agent {

class Listening {
 public:
  explicit Listening(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof(address.sun_path));
    std::ranges::copy(path, address.sun_path);
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(fd_.get(), 8) == 0);
  }

 private:
  Fd fd_;
};

}  // namespace vfio_agent
