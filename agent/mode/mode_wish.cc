#include "agent/mode/mode_wish.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace vfio_agent {

void ModeWish::SetRule(ModeRule rule, absl::Time now) {
  if (rule == rule_) return;
  if (rule.label != rule_.label) {  // whatever was read was another one
    read_ = false;
    value_.reset();
  }
  rule_ = std::move(rule);
  since_ = now;
}

bool ModeWish::SetLabels(const NodeLabels& labels, absl::Time now) {
  if (rule_.label.empty()) return false;
  const auto found = labels.find(rule_.label);
  std::optional<std::string> value;
  if (found != labels.end()) value = found->second;
  if (read_ && value == value_) return false;
  read_ = true;
  value_ = std::move(value);
  since_ = now;
  return true;
}

Mode ModeWish::Asked() const {
  if (!value_) return rule_.mode;
  const auto mode = rule_.values.find(*value_);
  return mode == rule_.values.end() ? rule_.mode : mode->second;
}

std::string ModeWish::Invalid() const {
  const bool known = !value_ || rule_.values.contains(*value_);
  return known || rule_.label.empty() ? "" : *value_;
}

ModeWish::Answer ModeWish::Ask(Mode in_force, absl::Time now) {
  if (rule_.label.empty()) return {.mode = rule_.mode};
  if (!read_) {
    return {.why_unknown = absl::StrFormat(
                "the node's label %s has not been read since the start: nothing is bound or given "
                "back before",
                rule_.label)};
  }
  const Mode asked = Asked();
  const absl::Time due = since_ + rule_.settle;
  if (asked == in_force || now >= due) return {.mode = asked};
  return {
      .why_unknown = absl::StrFormat("the node's label %s asks for %s, for less than %s",
                                     rule_.label, Name(asked), absl::FormatDuration(rule_.settle)),
      .due = due};
}

}  // namespace vfio_agent
