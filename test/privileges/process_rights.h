// What the kernel says of a process's privileges.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/privileges/rights.h"

namespace vfio_agent {

struct ProcessRights {
  Rights inheritable = 0;
  Rights permitted = 0;
  Rights effective = 0;
  Rights bounding = 0;
  Rights ambient = 0;
  bool no_new_privs = false;
};

// From the text of a proc/<pid>/status.
ProcessRights ParseCaps(const std::string& status);
std::string ReadStatus(const std::string& task);  // "4711", "4711/task/4712", "self"
ProcessRights CapsOf(const std::string& task);
std::vector<std::string> TasksOf(pid_t process);  // for CapsOf(), each of its threads
std::vector<pid_t> ChildrenOf(pid_t process);

// Runs `body` in a child process; its exit code, or -1.
template <typename Body>
int InChild(const Body& body);

int ForkAndWait(void (*body)(const void*), const void* context);

template <typename Body>
int InChild(const Body& body) {
  return ForkAndWait([](const void* context) { (*static_cast<const Body*>(context))(); }, &body);
}

}  // namespace vfio_agent
