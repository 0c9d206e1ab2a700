#include "agent/usage/words.h"

#include <algorithm>

#include "agent/commands/command_table.h"

namespace vfio_agent {
namespace {

// The command may stand behind its options: any of them counts.
bool TakesValue(const std::string& word) {
  return word.starts_with('-') && std::ranges::any_of(Commands(), [&word](const Command& command) {
           const std::optional<OptionRow> row = FindOption(&command, word);
           return row && !row->value.empty();
         });
}

}  // namespace

std::vector<std::string> SplitEmptyValues(const std::vector<std::string>& words) {
  std::vector<std::string> split;
  bool is_value = false;  // of the option before it
  bool ended = false;     // by "--"
  for (const std::string& word : words) {
    split.push_back(word);
    const bool is_option = !is_value && !ended && word != "--";
    ended = ended || (!is_value && word == "--");
    is_value = is_option && TakesValue(word);
    if (!is_option || !word.ends_with('=')) continue;
    std::string name = word.substr(0, word.size() - 1);
    if (!TakesValue(name)) continue;
    split.back() = std::move(name);
    split.emplace_back();
  }
  return split;
}

}  // namespace vfio_agent
