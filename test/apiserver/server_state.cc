// The thread: connections, and what is due on them.
#include "test/apiserver/server_state.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sysfs/clock.h"

namespace vfio_agent {
namespace {

constexpr int kBacklog = 64;
constexpr int kMilliseconds = 1000;

// IPv4 too, as ::ffff: would make no difference to a client; but ::1 is to be ::1.
Fd Bound(const std::string& host, int port) {
  sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(static_cast<uint16_t>(port))};
  const bool is_v6 = host.find(':') != std::string::npos;
  ::inet_pton(AF_INET, host.c_str(), &v4.sin_addr);
  ::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr);
  Fd fd(::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  const auto* address =
      is_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  const auto length = static_cast<socklen_t>(is_v6 ? sizeof v6 : sizeof v4);
  if (::bind(fd.get(), address, length) != 0) ::abort();
  return fd;
}

// The port stands at the same place for both families.
int PortOf(const Fd& fd) {
  sockaddr_in6 address = {};
  socklen_t length = sizeof address;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin6_port);
}

int TimeoutUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const int64_t left = absl::ToInt64Milliseconds(deadline - MonotonicNow());
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, kMilliseconds));
}

}  // namespace

void FakeApiServer::State::Listen() {
  if (!reserved.valid()) {
    reserved = Bound(host, 0);
    port = PortOf(reserved);
  }
  listener = Bound(host, port);
  if (::listen(listener.get(), kBacklog) != 0) ::abort();
}

void FakeApiServer::State::Wake() const {
  const uint64_t one = 1;
  if (::write(wake.get(), &one, sizeof one) < 0) ::abort();
}

void FakeApiServer::State::Accept() {
  for (;;) {
    Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    clients.push_back({.connection = TlsConnection(std::move(fd), identity.context.get())});
  }
}

// After `cut` bytes nothing more is said, and the connection ends.
void FakeApiServer::State::Send(Client& client, const std::string& text) {
  if (!client.cut) return client.connection.Send(text);
  client.connection.Send(text.substr(0, *client.cut));
  *client.cut -= std::min(*client.cut, text.size());
  if (*client.cut == 0) client.connection.CloseWhenSent();
}

void FakeApiServer::State::Serve(Client& client) {
  if (client.delayed && client.answer_at <= MonotonicNow()) {
    client.answer_at = absl::InfiniteFuture();
    const HttpCall call = *std::exchange(client.delayed, std::nullopt);
    Answer(client, call, client.fault);
  }
  while (!client.delayed && !client.hung && !client.watching) {
    std::optional<HttpCall> call = TakeCall(client.connection.in());
    if (!call) break;
    Begin(client, *std::move(call));
  }
  if (!client.watching) return;
  Feed(client);
  if (client.watch_until <= MonotonicNow()) EndWatch(client);
}

absl::Time FakeApiServer::State::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Client& client : clients) {
    next = std::min({next, client.answer_at, client.watch_until});
  }
  return next;
}

void FakeApiServer::State::Run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    std::vector<pollfd> polled = {{.fd = wake.get(), .events = POLLIN},
                                  {.fd = listener.get(), .events = POLLIN}};
    for (const Client& client : clients) {
      const short more = client.connection.wants_to_write() ? POLLOUT : short{0};
      polled.push_back({.fd = client.connection.fd(), .events = static_cast<short>(POLLIN | more)});
    }
    const int timeout = TimeoutUntil(NextDeadline());
    lock.unlock();
    ::poll(polled.data(), polled.size(), timeout);
    lock.lock();
    uint64_t woken = 0;
    // Nothing to read is as good as something: whatever it was, all is looked at.
    [[maybe_unused]] const ssize_t n = ::read(wake.get(), &woken, sizeof woken);
    if (listener.valid()) Accept();
    clients.remove_if([this](Client& client) {
      if (!client.connection.Receive()) return true;
      Serve(client);
      return !client.connection.Flush();
    });
    heard.notify_all();
  }
}

}  // namespace vfio_agent
