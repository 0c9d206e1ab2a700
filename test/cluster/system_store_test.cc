// Who the machine trusts is not who the cluster trusts: a server that the system's store or the
// environment vouches for is nobody to the agent.
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/str_format.h"
#include "agent/cluster/curl_library.h"
#include "test/apiserver/identity.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr char kStore[] = "/etc/ssl/certs";  // as Debian's libcurl has it

std::string CaOf(const FakeApiServer& server) {
  const AccountDir dir;
  server.WriteServiceAccount(dir.path());
  return ReadFile(dir.path() + "/ca.crt");
}

// In both ways in which such a store is looked up: all in one file, and each by its name's hash.
void WriteStore(const fs::path& dir, const std::string& ca) {
  std::ofstream(dir / "ca-certificates.crt") << ca;
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(
      ::BIO_new_mem_buf(ca.data(), static_cast<int>(ca.size())), ::BIO_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      ::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), ::X509_free);
  if (certificate == nullptr) ::abort();
  const unsigned long hash = ::X509_subject_name_hash(certificate.get());
  std::ofstream(dir / absl::StrFormat("%08x.0", hash)) << ca;
}

// What curl gets that trusts whom the machine trusts.
CURLcode AskAsAnybodyWould(const std::string& url) {
  const CurlLibrary& curl = **LoadCurl();
  CURLM* const multi = curl.multi_init();
  CURL* const easy = curl.easy_init();
  curl.easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl.easy_setopt(easy, CURLOPT_NOBODY, 1L);
  curl.multi_add_handle(multi, easy);
  int running = 1;
  while (running > 0) {
    curl.multi_perform(multi, &running);
    curl.multi_poll(multi, nullptr, 0, 1000, nullptr);
  }
  int left = 0;
  const CURLMsg* const message = curl.multi_info_read(multi, &left);
  const CURLcode result = message == nullptr ? CURLE_AGAIN : message->data.result;
  curl.multi_remove_handle(multi, easy);
  curl.easy_cleanup(easy);
  curl.multi_cleanup(multi);
  return result;
}

// Runs `work` on a thread that sees an empty directory in the store's place, and nobody else does.
// False where this user may not do that.
bool WithOwnStore(const std::function<void()>& work) {
  bool done = false;
  std::thread([&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (::mount("store", kStore, "tmpfs", 0, nullptr) != 0) return;
    work();
    done = true;
  }).join();
  return done;
}

}  // namespace

TEST_CASE("a server that only the system's store vouches for is not talked to") {
  const FakeApiServer server;
  const std::string ca = CaOf(server);
  // Of another name: OpenSSL looks no further for one that it has a certificate of.
  const std::string given = MakeTlsIdentity("another cluster").ca;
  const std::string url = server.url() + "/api/v1/nodes";
  CURLcode anybody = CURLE_AGAIN;
  HttpsAnswer right;
  HttpsAnswer wrong;
  const bool done = fs::is_directory(kStore) && WithOwnStore([&] {
                      WriteStore(kStore, ca);
                      anybody = AskAsAnybodyWould(url);
                      right = Ask(url, ca);
                      wrong = Ask(url, given);
                    });
  if (!done) {
    WARN("skipped: a store of its own takes root, and " << kStore);
    return;
  }
  CHECK(anybody == CURLE_OK);
  CHECK(right.code == 401);
  CHECK(absl::IsFailedPrecondition(wrong.status));
  CHECK(wrong.code == 0);
  CHECK(server.Count("GET", "/api/v1/nodes") == 1);
}

TEST_CASE("nor one that the environment vouches for") {
  const FakeApiServer server;
  const AccountDir dir;
  WriteStore(dir.path(), CaOf(server));
  const std::string file = dir.path() + "/ca-certificates.crt";
  constexpr std::array kFiles = {"SSL_CERT_FILE", "CURL_CA_BUNDLE"};
  for (const char* name : kFiles) ::setenv(name, file.c_str(), 1);
  ::setenv("SSL_CERT_DIR", dir.path().c_str(), 1);
  const HttpsAnswer answer =
      Ask(server.url() + "/api/v1/nodes", MakeTlsIdentity("another cluster").ca);
  CHECK(absl::IsFailedPrecondition(answer.status));
  CHECK(server.Calls().empty());
  for (const char* name : kFiles) ::unsetenv(name);
  ::unsetenv("SSL_CERT_DIR");
}

}  // namespace vfio_agent
