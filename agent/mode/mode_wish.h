// ModeWish: which mode is asked for, by the configuration or by a label of the node.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agent/mode/mode.h"

namespace vfio_agent {

using NodeLabels = std::map<std::string, std::string>;

// A label that keeps changing is not followed: it counts once it has stayed the same for a while,
// or at once where it says what is in force already. A value; the time comes from outside.
class ModeWish {
 public:
  explicit ModeWish(ModeRule rule) : rule_(std::move(rule)) {}

  void SetRule(ModeRule rule, absl::Time now);
  // What the API server shows. One that goes away says nothing, and the last word stays. True where
  // the label that decides says something else than before.
  bool SetLabels(const NodeLabels& labels, absl::Time now);

  struct Answer {
    std::optional<Mode> mode;                 // nullopt: not known, or not for long enough
    std::string why_unknown;                  // a sentence
    absl::Time due = absl::InfiniteFuture();  // when to ask again
  };
  // `in_force`: what the node is in, or on its way to.
  Answer Ask(Mode in_force, absl::Time now);

  // True while a label decides that has not been read since the start.
  bool unread() const { return !rule_.label.empty() && !read_; }

  // What the label says where that is no mode: the default counts then. Empty: it is one.
  std::string Invalid() const;

  const ModeRule& rule() const { return rule_; }

 private:
  Mode Asked() const;

  ModeRule rule_;
  bool read_ = false;                        // the labels, since the start
  std::optional<std::string> value_;         // nullopt: the node has no such label
  absl::Time since_ = absl::InfinitePast();  // since when it says so
};

}  // namespace vfio_agent
