#include "test/apiserver/tls_connection.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>

namespace vfio_agent {

TlsConnection::TlsConnection(Fd fd, SSL_CTX* context)
    : fd_(std::move(fd)), ssl_(::SSL_new(context), ::SSL_free) {
  ::SSL_set_fd(ssl_.get(), fd_.get());
  ::SSL_set_accept_state(ssl_.get());
}

bool TlsConnection::GoesOn(int result) {
  const int error = ::SSL_get_error(ssl_.get(), result);
  ::ERR_clear_error();
  if (error == SSL_ERROR_WANT_WRITE) wants_to_write_ = true;
  return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ;
}

bool TlsConnection::Greet() {
  wants_to_write_ = false;
  ::ERR_clear_error();
  if (greeted_) return true;
  const int result = ::SSL_accept(ssl_.get());
  greeted_ = result > 0;
  return greeted_ || GoesOn(result);
}

bool TlsConnection::Receive() {
  if (!Greet()) return false;
  std::array<char, 16384> buffer = {};
  while (greeted_) {
    const int n = ::SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (n <= 0) return GoesOn(n);
    in_.append(buffer.data(), static_cast<size_t>(n));
  }
  return true;
}

bool TlsConnection::Flush() {
  if (!greeted_) return !closing_;
  while (!out_.empty()) {
    const auto size = static_cast<int>(std::min<size_t>(out_.size(), 1U << 20));
    const int n = ::SSL_write(ssl_.get(), out_.data(), size);
    if (n <= 0) return GoesOn(n);
    out_.erase(0, static_cast<size_t>(n));
  }
  return !closing_;
}

}  // namespace vfio_agent
