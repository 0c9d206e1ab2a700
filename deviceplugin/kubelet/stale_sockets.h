// What lies in the kubelet's directory beside our own sockets: those of agents that were killed,
// and those of other plugins.
#pragma once

#include <string>
#include <vector>

namespace vfio_agent {

// What RemoveStaleSockets() did, file names with their directory.
struct StaleSockets {
  std::vector<std::string> removed;
  std::vector<std::string> kept;  // with the reason why they could not be removed
};

// Removes the sockets in `dir` that have the form of our names (SocketName, or hidden as Listener
// makes them) and on which nobody listens. Nothing else is touched: no other name, no file that is
// not a socket, no link, no socket that answers or that cannot be asked. A directory that is not
// there has none.
//
// Only for the one agent of the node.
StaleSockets RemoveStaleSockets(const std::string& dir);

// By connecting, without waiting. A socket's file alone says nothing: it outlives who is killed.
bool SomebodyListens(const std::string& path);

// The file name of the socket on which KubeVirt's own plugin serves `resource`.
std::string KubeVirtSocketName(const std::string& resource);

// The sockets in `dir` on which somebody listens: not the kubelet, and no vfio-agent.
std::vector<std::string> OtherPlugins(const std::string& dir);

}  // namespace vfio_agent
