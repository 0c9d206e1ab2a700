// RegisterCall: one attempt to make one resource known to the kubelet, without waiting for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace vfio_agent {

// The kubelet dials back within this call and gives that 10 s.
inline constexpr absl::Duration kRegisterTimeout = absl::Seconds(15);

class RegisterCall {
 public:
  using Done = std::function<void(absl::Status)>;

  // Calls the kubelet that listens on `kubelet_socket`. `done` is called exactly once, on a thread
  // that the call has to itself.
  static std::unique_ptr<RegisterCall> Start(const std::string& kubelet_socket,
                                             const std::string& resource,
                                             const std::string& endpoint, Done done,
                                             absl::Duration timeout = kRegisterTimeout);
  // Cancels a call that is still under way and waits for `done`, which comes at once then. Not to
  // be called from `done`.
  ~RegisterCall();

  RegisterCall(const RegisterCall&) = delete;
  RegisterCall& operator=(const RegisterCall&) = delete;

 private:
  struct State;
  explicit RegisterCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// True where the kubelet will say the same again: the name or the API version does not please it.
bool IsPermanent(const absl::Status& status);

}  // namespace vfio_agent
