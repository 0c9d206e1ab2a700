#include "deviceplugin/kubelet/kubelet_watch.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

void MakeSocket(const std::string& path) {
  std::filesystem::remove(path);
  sockaddr_un address = {.sun_family = AF_UNIX};
  REQUIRE(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
}

bool IsReadable(const KubeletWatch& watch) {
  pollfd wait = {watch.fd(), POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

TEST_CASE("R14: a kubelet socket that comes, stays, is made anew and goes", "[deviceplugin]") {
  TempDir dir;
  KubeletWatch watch(dir.path());
  KubeletWatch::Look look = watch.LookAgain();
  CHECK(watch.armed());
  CHECK_FALSE(look.kubelet_present);
  CHECK_FALSE(IsReadable(watch));

  MakeSocket(watch.kubelet_socket());
  CHECK(IsReadable(watch));
  look = watch.LookAgain();
  CHECK((look.kubelet_present && look.kubelet_new));
  CHECK_FALSE(look.kubelet_restarted);
  watch.Drain();
  CHECK_FALSE(IsReadable(watch));

  look = watch.LookAgain();
  CHECK(look.kubelet_present);
  CHECK_FALSE(look.kubelet_new);

  MakeSocket(watch.kubelet_socket());
  look = watch.LookAgain();
  CHECK((look.kubelet_new && look.kubelet_restarted));

  std::filesystem::remove(watch.kubelet_socket());
  look = watch.LookAgain();
  CHECK_FALSE(look.kubelet_present);
  CHECK_FALSE(look.directory_replaced);

  MakeSocket(watch.kubelet_socket());
  CHECK(watch.LookAgain().kubelet_restarted);
}

TEST_CASE("a file of the kubelet socket's name is no kubelet", "[deviceplugin]") {
  TempDir dir;
  KubeletWatch watch(dir.path());
  std::ofstream(watch.kubelet_socket()) << "no socket";
  CHECK_FALSE(watch.LookAgain().kubelet_present);
}

TEST_CASE("R17: a directory that is replaced, or goes, is told once", "[deviceplugin]") {
  TempDir dir;
  const std::string path = dir.path() + "/device-plugins";
  std::filesystem::create_directory(path);
  KubeletWatch watch(path);
  CHECK_FALSE(watch.LookAgain().directory_replaced);

  SECTION("by another one") {
    std::filesystem::rename(path, path + ".old");
    std::filesystem::create_directory(path);
    CHECK(IsReadable(watch));
    CHECK(watch.LookAgain().directory_replaced);
    CHECK(watch.armed());
    watch.Drain();
    MakeSocket(watch.kubelet_socket());
    CHECK(IsReadable(watch));
  }
  SECTION("by nothing") {
    std::filesystem::remove(path);
    CHECK(IsReadable(watch));
    CHECK(watch.LookAgain().directory_replaced);
    CHECK_FALSE(watch.armed());
  }
  CHECK_FALSE(watch.LookAgain().directory_replaced);
}

TEST_CASE("a directory that is not there yet is taken up when it comes", "[deviceplugin]") {
  TempDir dir;
  KubeletWatch watch(dir.path() + "/later");
  CHECK_FALSE(watch.LookAgain().directory_replaced);
  CHECK_FALSE(watch.armed());
  std::filesystem::create_directory(watch.dir());
  CHECK_FALSE(watch.LookAgain().directory_replaced);
  CHECK(watch.armed());
}

}  // namespace
}  // namespace vfio_agent
