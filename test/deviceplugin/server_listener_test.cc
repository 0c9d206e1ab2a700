// Who may connect to a plugin's socket, and what becomes of its file.
#include "deviceplugin/grpc/listener.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "catch2/catch.hpp"
#include "sysfs/status.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

constexpr uid_t kNobody = 65534;
constexpr std::chrono::seconds kLong(10);

Fd NewSocket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

bool Connect(const Fd& socket, const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// True where the other side hangs up without a word.
bool IsHungUp(const Fd& socket) {
  char byte = 0;
  return ::read(socket.get(), &byte, 1) == 0;
}

// Connects as another user: to the kernel, who one is, is a matter of the thread.
Fd ConnectAs(uid_t uid, const std::string& path) {
  Fd socket = NewSocket();
  bool connected = false;
  std::thread([&] {
    connected = ::syscall(SYS_setresuid, -1, uid, -1) == 0 && Connect(socket, path);
  }).join();
  return connected ? std::move(socket) : Fd();
}

// A listener and what it told.
struct Heard {
  Heard() {
    listener = *Listener::Start(path, {.accepted =
                                           [this](int fd) {
                                             const std::scoped_lock lock(mutex);
                                             accepted.emplace_back(fd);
                                             changed.notify_all();
                                           },
                                       .turned_away =
                                           [this](const RefusedPeer& peer) {
                                             const std::scoped_lock lock(mutex);
                                             refused.push_back(peer);
                                             changed.notify_all();
                                           }});
  }
  template <typename Things>
  bool WaitFor(const Things& things, size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kLong, [&] { return things.size() == count; });
  }

  TempDir dir;
  std::string path = dir.path() + "/x.sock";
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Fd> accepted;
  std::vector<RefusedPeer> refused;
  std::unique_ptr<Listener> listener;  // ends first
};

TEST_CASE("R21: only root and our own user may speak", "[deviceplugin]") {
  CHECK(MaySpeak(0, 0));
  CHECK(MaySpeak(0, 1000));
  CHECK(MaySpeak(1000, 1000));
  CHECK_FALSE(MaySpeak(1000, 0));
  CHECK_FALSE(MaySpeak(1001, 1000));
  CHECK_FALSE(MaySpeak(static_cast<uid_t>(-1), 0));
}

TEST_CASE("R21: the socket's file is for its owner alone, whatever the umask", "[deviceplugin]") {
  const mode_t before = ::umask(0);
  Heard heard;
  ::umask(before);
  struct stat info = {};
  REQUIRE(::stat(heard.path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  const Fd socket = NewSocket();
  CHECK(Connect(socket, heard.path));
  CHECK(heard.WaitFor(heard.accepted, 1));
}

TEST_CASE("R21: another user is turned away even where the file's mode lets him in, and told once",
          "[deviceplugin]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can be somebody else");
    return;
  }
  Heard heard;
  std::filesystem::permissions(heard.dir.path(), std::filesystem::perms(0755));
  CHECK_FALSE(ConnectAs(kNobody, heard.path).valid());
  REQUIRE(::chmod(heard.path.c_str(), 0666) == 0);
  for (int call = 1; call <= 3; ++call) {
    const Fd socket = ConnectAs(kNobody, heard.path);
    REQUIRE(socket.valid());
    CHECK(IsHungUp(socket));
  }
  REQUIRE(heard.WaitFor(heard.refused, 1));
  CHECK(heard.refused[0].uid == kNobody);
  CHECK(heard.refused[0].pid == ::getpid());
  const Fd ours = NewSocket();
  CHECK(Connect(ours, heard.path));
  CHECK(heard.WaitFor(heard.accepted, 1));
  CHECK(heard.refused.size() == 1);
}

TEST_CASE("R21: the loop hears of a stranger, and the plugin serves on", "[deviceplugin][grpc]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can be somebody else");
    return;
  }
  TempDir dir;
  UnitTree tree;
  PluginLoop loop(dir.path(), tree.tree());
  loop.plugins().Set({TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0")})});
  REQUIRE(loop.RunUntil([&] { return !loop.plugins().Status()[0].socket.empty(); }));
  const std::string socket = loop.plugins().Status()[0].socket;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  REQUIRE(::chmod(socket.c_str(), 0666) == 0);
  CHECK(IsHungUp(ConnectAs(kNobody, socket)));
  REQUIRE(loop.RunUntil([&] { return loop.Count(PluginEvent::Kind::kPeerRefused) == 1; }));
  CHECK(loop.events().back().resource == "nvidia.com/X");
  CHECK_THAT(loop.events().back().text, Catch::Contains("of user 65534 was turned away"));
  CHECK(loop.plugins().Status()[0].socket == socket);
}

TEST_CASE("R21: a stranger is described by user, process and how many came before",
          "[deviceplugin]") {
  CHECK_THAT(Describe({.uid = 1000, .pid = 4711}),
             Catch::StartsWith("pid 4711 of user 1000 was turned away: "));
  CHECK_THAT(Describe({.uid = 1000, .pid = 4711, .untold = 3}),
             Catch::Contains("turned away (and 3 more before it): "));
}

TEST_CASE("who waits while the process has no descriptor left is taken later", "[deviceplugin]") {
  Heard heard;
  const Fd socket = NewSocket();
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  // Sanitizers want descriptors where Catch2 compares, so nothing is compared between.
  const bool narrowed = ::setrlimit(RLIMIT_NOFILE, &none) == 0;
  const bool connected = Connect(socket, heard.path);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(narrowed);
  CHECK(connected);
  CHECK(heard.WaitFor(heard.accepted, 1));
}

TEST_CASE("R7: the file goes with the listener, but not another one in its place",
          "[deviceplugin]") {
  Heard heard;
  SECTION("ours") {
    heard.listener.reset();
    CHECK_FALSE(std::filesystem::exists(heard.path));
  }
  SECTION("another one") {
    const std::string other = heard.dir.path() + "/other.sock";
    auto second = *Listener::Start(other, {});
    std::filesystem::rename(other, heard.path);
    heard.listener.reset();
    CHECK(std::filesystem::exists(heard.path));
  }
  SECTION("none") {
    std::filesystem::remove(heard.path);
    heard.listener.reset();
    CHECK_FALSE(std::filesystem::exists(heard.path));
  }
  CHECK_FALSE(std::filesystem::exists(heard.dir.path() + "/..sock"));
}

TEST_CASE("R6: what keeps a socket from being made is an error with its errno", "[deviceplugin]") {
  TempDir dir;
  CHECK(ErrnoOf(Listener::Start(dir.path() + "/not/there.sock", {}).status()) == ENOENT);
  const auto full = Listener::Start(dir.path() + "/" + std::string(107, 'n'), {});
  CHECK(ErrnoOf(full.status()) == ENAMETOOLONG);
  CHECK(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace vfio_agent
