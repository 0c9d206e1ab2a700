// The Kernel's control file: what a test makes happen on the node behind the agent's back.
#include <cerrno>
#include <charconv>
#include <sstream>

#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

int Number(const std::string& text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

int Kernel::Control(std::string_view command) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Caller nobody;
  Call call{.lock = lock, .caller = nobody};
  while (command.ends_with('\n')) command.remove_suffix(1);
  std::istringstream in{std::string(command)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.empty()) return EINVAL;
  const size_t space = std::min(command.find(' '), command.size());
  const int error = RunCommand(words, command.substr(space), call);
  changed_.notify_all();
  return error;
}

int Kernel::RunCommand(const std::vector<std::string>& words, std::string_view rest, Call& call) {
  const std::string& verb = words[0];
  if (verb == "quit") {
    quit_ = true;
  } else if (verb == "clear-faults") {
    faults_.Clear();
  } else if (verb == "fault") {
    const auto fault = ParseFault(std::string(rest));
    if (!fault.ok()) return EINVAL;
    faults_.Add(*fault);
  } else if (verb == "hold" && words.size() == 4) {
    return Hold(Number(words[1]), Number(words[2]), words[3]);
  } else if (verb == "free" && words.size() == 2) {
    return Free(Number(words[1]));
  } else if (verb == "load" && words.size() == 2) {
    LoadDriver(words[1]);
  } else if (verb == "unload" && words.size() == 2) {
    UnloadDriver(words[1]);
  } else {
    return RunDeviceCommand(words, call);
  }
  return 0;
}

int Kernel::RunDeviceCommand(const std::vector<std::string>& words, Call& call) {
  const DevicePtr device = words.size() >= 2 ? Find(words[1]) : nullptr;
  if (device == nullptr) return words.size() >= 2 ? ENODEV : EINVAL;
  const std::string& verb = words[0];
  if (verb == "remove" && words.size() == 2) {
    device->fell_off = true;
    Vanish(device);
  } else if (verb == "add" && words.size() == 2) {
    Appear(device, call);
  } else if (verb == "release-blocked" && words.size() == 2) {
    device->released = true;
  } else if (verb == "rebind" && words.size() == 3) {
    if (!device->present) return ENODEV;
    LoadDriver(words[2]);
    Detach(device);
    Attach(device, words[2]);
  } else if (verb == "vfs" && words.size() == 3) {
    const int count = Number(words[2]);
    if (count < 0 || count > device->facts.sriov_total_vfs) return ERANGE;
    const int error = device->num_vfs > 0 ? DisableVfs(device, call) : 0;
    if (error != 0) return error;
    if (count > 0) EnableVfs(device, count, call);
  } else {
    return EINVAL;
  }
  return 0;
}

}  // namespace vfio_agent::sim
