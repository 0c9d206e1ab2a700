// Where the API server is, and what shows it who we are.
#include "agent/cluster/credentials.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

constexpr char kCa[] = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("the server is the one of the settings, else that of the pod's environment") {
  CHECK(*ServerUrl("https://api.example:6443/", "10.96.0.1", "443") == "https://api.example:6443");
  CHECK(*ServerUrl("https://rancher.example/k8s/clusters/c-1", "", "") ==
        "https://rancher.example/k8s/clusters/c-1");
  CHECK(*ServerUrl("", "10.96.0.1", "443") == "https://10.96.0.1:443");
  CHECK(*ServerUrl("", "10.96.0.1", "") == "https://10.96.0.1:443");
  CHECK(*ServerUrl("", "fd00:10:96::1", "6443") == "https://[fd00:10:96::1]:6443");
  CHECK(*ServerUrl("", "[fd00::1]", "6443") == "https://[fd00::1]:6443");
  CHECK(absl::IsUnavailable(ServerUrl("", "", "443").status()));
}

TEST_CASE("what is no https address of a server is refused") {
  for (const char* url : {"http://api:6443", "https://", "api:6443", "https:///x", "https://a b",
                          "https://user@api", "https://api?x=1", "https://api\r\nX: y"}) {
    CAPTURE(url);
    CHECK(absl::IsInvalidArgument(ServerUrl(url, "", "").status()));
  }
  CHECK(absl::IsInvalidArgument(ServerUrl("", "10.96.0.1/x?", "443").status()));
  for (const char* port : {"0", "65536", "x", "-1"}) {
    CAPTURE(port);
    CHECK(absl::IsInvalidArgument(ServerUrl("", "10.96.0.1", port).status()));
  }
}

TEST_CASE("token and CA are read through links, without the newline at the token's end") {
  const AccountDir dir;
  Write(dir.path() + "/real", "ey.J-_9\n");
  Write(dir.path() + "/ca", kCa);
  REQUIRE(::symlink("real", (dir.path() + "/token").c_str()) == 0);
  const auto read = ReadCredentials(dir.path() + "/token", dir.path() + "/ca");
  REQUIRE(read.ok());
  CHECK(read->token == "ey.J-_9");
  CHECK(read->ca == kCa);
}

TEST_CASE("what cannot be a token never becomes part of a request") {
  const AccountDir dir;
  const std::string token = dir.path() + "/token";
  const std::string ca = dir.path() + "/ca";
  Write(ca, kCa);
  CHECK(absl::IsNotFound(ReadCredentials(token, ca).status()));
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("a\r\nX-Evil: b"), std::string("a b"),
        std::string("a\0b", 3), std::string(70000, 'a')}) {
    Write(token, text);
    CHECK(absl::IsDataLoss(ReadCredentials(token, ca).status()));
  }
  ::unlink(token.c_str());
  REQUIRE(::mkfifo(token.c_str(), 0600) == 0);
  CHECK(absl::IsDataLoss(ReadCredentials(token, ca).status()));
  ::unlink(token.c_str());
  Write(token, "a");
  Write(ca, "no certificate");
  CHECK(absl::IsDataLoss(ReadCredentials(token, ca).status()));
}

}  // namespace vfio_agent
