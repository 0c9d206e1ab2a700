#include "test/privileges/process_rights.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace vfio_agent {

ProcessRights ParseCaps(const std::string& status) {
  ProcessRights caps;
  std::istringstream lines(status);
  for (std::string key, value; lines >> key;) {
    std::getline(lines, value);
    const auto number = [&value] { return std::strtoull(value.c_str(), nullptr, 16); };
    if (key == "CapInh:") caps.inheritable = number();
    if (key == "CapPrm:") caps.permitted = number();
    if (key == "CapEff:") caps.effective = number();
    if (key == "CapBnd:") caps.bounding = number();
    if (key == "CapAmb:") caps.ambient = number();
    if (key == "NoNewPrivs:") caps.no_new_privs = number() != 0;
  }
  return caps;
}

std::string ReadStatus(const std::string& task) {
  std::ifstream file("/proc/" + task + "/status");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ProcessRights CapsOf(const std::string& task) { return ParseCaps(ReadStatus(task)); }

std::vector<std::string> TasksOf(pid_t process) {
  std::vector<std::string> tasks;
  std::error_code error;
  const std::string dir = std::to_string(process) + "/task/";
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + dir, error)) {
    tasks.push_back(dir + entry.path().filename().string());
  }
  return tasks;
}

std::vector<pid_t> ChildrenOf(pid_t process) {
  std::vector<pid_t> children;
  for (const std::string& task : TasksOf(process)) {
    std::ifstream file("/proc/" + task + "/children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

int ForkAndWait(void (*body)(const void*), const void* context) {
  const pid_t pid = ::fork();
  if (pid < 0) return -1;
  if (pid == 0) {
    body(context);
    ::_exit(99);  // a body says how it ends
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace vfio_agent
