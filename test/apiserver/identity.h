// TlsIdentity: a certificate authority and a server's certificate of it, made when they are asked
// for.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace vfio_agent {

using SslContext = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

struct TlsIdentity {
  std::string ca;  // PEM
  // Serves a certificate for localhost, 127.0.0.1 and ::1 that this CA has signed.
  SslContext context{nullptr, ::SSL_CTX_free};
};

// `ca`: the name of the authority.
TlsIdentity MakeTlsIdentity(const char* ca = "kubernetes");

}  // namespace vfio_agent
