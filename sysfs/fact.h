// Fact: one value that the kernel may have told, may not have, or would not let us read.
#pragma once

#include <utility>

namespace vfio_agent {

// Absent, unknown and zero are three different answers. "Absent": the kernel has no such
// attribute (no ACS capability, an old kernel without reset_method). "Unknown": it has one and
// we could not read it (no CAP_SYS_ADMIN, an I/O error, nonsense); `error` is then the errno.
template <typename T>
class Fact {
 public:
  static Fact Absent() { return Fact(); }
  static Fact Unknown(int error) {
    Fact fact;
    fact.state_ = State::kUnknown;
    fact.error_ = error;
    return fact;
  }
  Fact() = default;
  explicit Fact(T value) : state_(State::kKnown), value_(std::move(value)) {}

  bool known() const { return state_ == State::kKnown; }
  bool absent() const { return state_ == State::kAbsent; }
  bool unknown() const { return state_ == State::kUnknown; }

  // Only when known(); otherwise the default value.
  const T& value() const { return value_; }
  T value_or(T other) const { return known() ? value_ : std::move(other); }
  bool is(const T& wanted) const { return known() && value_ == wanted; }

  // The errno behind an unknown value; 0 otherwise.
  int error() const { return error_; }

  bool operator==(const Fact&) const = default;

 private:
  enum class State { kAbsent, kUnknown, kKnown };
  State state_ = State::kAbsent;
  int error_ = 0;
  T value_{};
};

}  // namespace vfio_agent
