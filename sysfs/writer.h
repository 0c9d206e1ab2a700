// Writer: the one way in which the agent changes the kernel's state.
//
// The only virtual class of the kernel side. Two implementations: TreeWriter writes, and
// test/support's FakeKernel records and then acts as the kernel would. A dry run needs neither:
// it prints the plan.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace vfio_agent {

class Tree;

class Writer {
 public:
  virtual ~Writer() = default;

  // Writes `text` to an existing attribute in one write(2). Never creates a file. May block for
  // as long as the kernel likes (an unbind waits for the old driver): call it in a child process.
  // The error is the kernel's answer; the errno is kept in ErrnoOf(status).
  virtual absl::Status Write(std::string_view path, std::string_view text) = 0;

  // Loads a kernel module by name with its dependencies. Unimplemented where the root is not "/".
  virtual absl::Status LoadModule(std::string_view module) = 0;
};

class TreeWriter final : public Writer {
 public:
  explicit TreeWriter(const Tree& tree) : tree_(tree) {}
  absl::Status Write(std::string_view path, std::string_view text) override;
  absl::Status LoadModule(std::string_view module) override;

 private:
  const Tree& tree_;  // outlives the writer
};

}  // namespace vfio_agent
