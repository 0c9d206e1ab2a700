#include "test/sim/killed.h"

#include <charconv>
#include <csignal>
#include <fstream>
#include <string>

namespace vfio_agent::sim {

bool SigkillPending(pid_t thread) {
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  constexpr char kPending[] = "SigPnd:\t";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kPending)) continue;
    unsigned long long pending = 0;
    const char* const digits = line.c_str() + sizeof kPending - 1;
    std::from_chars(digits, line.c_str() + line.size(), pending, 16);
    return (pending >> (SIGKILL - 1) & 1) != 0;
  }
  return true;
}

}  // namespace vfio_agent::sim
