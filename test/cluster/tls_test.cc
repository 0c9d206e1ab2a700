// Who the API server is, and who we are: certificates, tokens, addresses.
#include <stdlib.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "agent/cluster/transport.h"
#include "sysfs/clock.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

bool Connects(ClusterStand& stand) {
  return stand.WaitFor([&] { return stand.cluster().Status().connected; });
}

// Until the last error has that word in it.
bool Fails(ClusterStand& stand, const std::string& word) {
  return stand.WaitFor(
      [&] { return stand.cluster().Status().last_error.find(word) != std::string::npos; });
}

std::string ErrorOf(ClusterStand& stand) {
  CHECK(stand.WaitFor([&] { return !stand.cluster().Status().last_error.empty(); }));
  return stand.cluster().Status().last_error;
}

}  // namespace

TEST_CASE("a token that was replaced is used from the next request on") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  CHECK(Connects(stand));
  stand.server().RotateToken();
  stand.server().WriteServiceAccount(stand.account());
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  CHECK(cluster.Status().requests.count({"patch", "401"}) == 0);
}

TEST_CASE("an old token is refused, tried no more often than other failures, and told") {
  ClusterStand stand;
  stand.server().RotateToken();
  stand.Start();
  CHECK(ErrorOf(stand) == "HTTP 401: Unauthorized");
  stand.server().WriteServiceAccount(stand.account());
  CHECK(Connects(stand));
}

TEST_CASE("a server whose certificate another CA has signed is not talked to") {
  ClusterStand stand;
  stand.server().RotateCa();
  stand.Start();
  CHECK(Fails(stand, "certificate"));
  CHECK(stand.server().Calls().empty());
  CHECK(stand.WaitFor([&] {
    return stand.Notes().find("the CA file does not vouch for this server") != std::string::npos;
  }));
  // The kubelet brings the new CA.
  stand.server().WriteServiceAccount(stand.account());
  CHECK(Connects(stand));
}

TEST_CASE("a CA that was replaced is used for the next connection, and the old one no more") {
  ClusterStand stand;
  stand.Start();
  CHECK(Connects(stand));
  stand.server().RotateCa();
  stand.server().CutConnections();
  CHECK(Fails(stand, "certificate"));
  stand.server().WriteServiceAccount(stand.account());
  CHECK(Connects(stand));
}

TEST_CASE("a certificate that does not name the host is refused") {
  const auto ask = [](const char* host) {
    const FakeApiServer server(host);
    const AccountDir dir;
    server.WriteServiceAccount(dir.path());
    return Ask(server.url() + "/api/v1/nodes", ReadFile(dir.path() + "/ca.crt"));
  };
  CHECK(ask("127.0.0.1").code == 401);
  const HttpsAnswer answer = ask("127.0.0.2");
  CHECK(answer.code == 0);
  CHECK(absl::IsFailedPrecondition(answer.status));
  CHECK_THAT(std::string(answer.status.message()), Catch::Contains("127.0.0.2"));
}

TEST_CASE("an IPv6 address is talked to in brackets") {
  if (!fs::exists("/proc/sys/net/ipv6") || ReadFile("/proc/net/if_inet6").empty()) {
    WARN("skipped: no IPv6 on this machine");
    return;
  }
  ClusterStand stand("::1");
  CHECK(stand.options().server.starts_with("https://[::1]:"));
  stand.Start();
  CHECK(Connects(stand));
}

TEST_CASE("proxies of the environment are not asked, and redirects not followed") {
  constexpr std::array kNames = {"https_proxy", "HTTPS_PROXY", "http_proxy",
                                 "HTTP_PROXY",  "all_proxy",   "ALL_PROXY"};
  for (const char* name : kNames) ::setenv(name, "http://127.0.0.1:1", 1);
  ClusterStand stand;
  stand.server().Add({.path = "/api/v1/nodes",
                      .code = 307,
                      .location = stand.server().url() + "/api/v1/elsewhere"});
  stand.Start();
  CHECK(Connects(stand));
  CHECK(stand.cluster().Status().requests.at({"list", "307"}) == 1);
  CHECK(stand.server().Count("GET", "/api/v1/elsewhere") == 0);
  for (const char* name : kNames) ::unsetenv(name);
}

TEST_CASE("credentials that are away for a while are waited for") {
  ClusterStand stand;
  const std::string token = stand.account() + "/token";
  fs::rename(token, token + ".away");
  std::ofstream(token) << "";
  stand.Start();
  CHECK(ErrorOf(stand) == token + " has no token in it");
  CHECK(stand.server().Calls().empty());
  fs::rename(token + ".away", token);
  CHECK(Connects(stand));
}

TEST_CASE("only https is spoken") {
  CHECK_FALSE(Ask("http://127.0.0.1:1/", "-----BEGIN").status.ok());
  CHECK(Ask("file:///etc/hostname", "-----BEGIN").body.empty());
}

TEST_CASE("a transport that is told to wait wakes up from another thread") {
  const std::unique_ptr<Transport> transport = *Transport::Open();
  transport->Wake();
  const absl::Time start = MonotonicNow();
  transport->Run(absl::Seconds(20));
  CHECK(MonotonicNow() - start < absl::Seconds(10));
}

TEST_CASE("a request that was given up tells nothing, also from within another's callback") {
  FakeApiServer server;
  server.Add({.times = ApiFault::kAlways, .code = 200, .body = "{}"});
  const AccountDir dir;
  server.WriteServiceAccount(dir.path());
  const std::string ca = ReadFile(dir.path() + "/ca.crt");
  const std::unique_ptr<Transport> transport = *Transport::Open();
  int told = 0;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(transport->Start({.url = server.url() + "/x", .ca = ca}, [&](const HttpsAnswer&) {
      ++told;
      for (const uint64_t id : ids) transport->Cancel(id);
    }));
  }
  while (told == 0) transport->Run(absl::Seconds(1));
  for (int i = 0; i < 3; ++i) transport->Run(absl::Milliseconds(1));
  CHECK(told == 1);
}

}  // namespace vfio_agent
