// TlsConnection: one client of the fake API server, never waited for.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "sysfs/fd.h"

namespace vfio_agent {

class TlsConnection {
 public:
  TlsConnection(Fd fd, SSL_CTX* context);

  // What can be at once. False: the connection is over.
  bool Receive();
  bool Flush();
  int fd() const { return fd_.get(); }
  bool wants_to_write() const { return wants_to_write_; }

  std::string& in() { return in_; }
  void Send(const std::string& text) { out_ += text; }
  // After what was sent so far, without a farewell: as where a cable is pulled or a process is
  // killed.
  void CloseWhenSent() { closing_ = true; }

 private:
  // False: over. Otherwise what OpenSSL waits for has been noted.
  bool GoesOn(int result);
  bool Greet();

  Fd fd_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  bool greeted_ = false;
  bool wants_to_write_ = false;
  bool closing_ = false;
  std::string in_;
  std::string out_;
};

}  // namespace vfio_agent
