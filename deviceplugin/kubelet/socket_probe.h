// SocketProbe: whether somebody listens on a unix socket.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

class Tree;

enum class SocketState {
  kAbsent,   // no such file
  kAnswers,  // somebody listens
  kDead,     // a file that nobody listens on: its owner was killed
  kPresent,  // there, and not asked
  kUnclear,  // it cannot be looked at, or is no socket; `error` says why
};

struct SocketProbe {
  std::string path;  // "/run/containerd/containerd.sock", for messages
  SocketState state = SocketState::kAbsent;
  int error = 0;
  bool operator==(const SocketProbe&) const = default;
};

// Looks at `path` below `tree`, following links inside it only. With `ask` it connects too, which
// never waits, and says nothing.
SocketProbe ProbeSocket(const Tree& tree, std::string_view path, bool ask);

}  // namespace vfio_agent
