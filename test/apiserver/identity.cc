#include "test/apiserver/identity.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdlib>

namespace vfio_agent {
namespace {

using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using Certificate = std::unique_ptr<X509, void (*)(X509*)>;

constexpr long kVersion3 = 2;
constexpr long kDay = 24L * 3600;

void Require(bool made) {
  if (!made) ::abort();  // OpenSSL is broken, or out of memory
}

Key MakeKey() {
  Key key(::EVP_EC_gen("P-256"), ::EVP_PKEY_free);
  Require(key != nullptr);
  return key;
}

void AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  Require(extension != nullptr);
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
}

Certificate MakeCertificate(const char* name, long serial, EVP_PKEY* key) {
  Certificate certificate(::X509_new(), ::X509_free);
  Require(certificate != nullptr);
  ::X509_set_version(certificate.get(), kVersion3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate.get()), serial);
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate.get()), -kDay);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate.get()), kDay);
  ::X509_set_pubkey(certificate.get(), key);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  return certificate;
}

std::string ToPem(X509* certificate) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(::BIO_new(::BIO_s_mem()), ::BIO_free);
  Require(::PEM_write_bio_X509(bio.get(), certificate) == 1);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(length)};
}

}  // namespace

TlsIdentity MakeTlsIdentity(const char* ca_name) {
  static long serial = 0;
  const Key ca_key = MakeKey();
  // A cluster's CA has the same name after its rotation, and another key with its identifier, as Go
  // makes them.
  const Certificate ca = MakeCertificate(ca_name, ++serial, ca_key.get());
  ::X509_set_issuer_name(ca.get(), ::X509_get_subject_name(ca.get()));
  AddExtension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign");
  AddExtension(ca.get(), ca.get(), NID_subject_key_identifier, "hash");
  Require(::X509_sign(ca.get(), ca_key.get(), ::EVP_sha256()) > 0);
  const Key key = MakeKey();
  const Certificate leaf = MakeCertificate("kube-apiserver", ++serial, key.get());
  ::X509_set_issuer_name(leaf.get(), ::X509_get_subject_name(ca.get()));
  AddExtension(leaf.get(), ca.get(), NID_authority_key_identifier, "keyid:always");
  AddExtension(leaf.get(), ca.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1");
  Require(::X509_sign(leaf.get(), ca_key.get(), ::EVP_sha256()) > 0);
  TlsIdentity identity{.ca = ToPem(ca.get())};
  identity.context.reset(::SSL_CTX_new(::TLS_server_method()));
  Require(::SSL_CTX_use_certificate(identity.context.get(), leaf.get()) == 1);
  Require(::SSL_CTX_use_PrivateKey(identity.context.get(), key.get()) == 1);
  ::SSL_CTX_set_mode(identity.context.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return identity;
}

}  // namespace vfio_agent
