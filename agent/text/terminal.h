// Terminal: what a terminal can do, and text that makes use of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "agent/session.h"

namespace vfio_agent {

// The columns of the terminal behind `fd`; 0 where it is none, or does not say.
size_t TerminalWidth(int fd);
size_t TerminalHeight(int fd);
bool IsTerminal(int fd);
// Of a text for people on standard output: as wide as the terminal, at most 100.
size_t TextWidth();
// Of a table there: as wide as the terminal, else what COLUMNS says, else 100.
size_t TableWidth();

enum class Style { kPlain, kBold, kDim, kGood, kChange, kBad };

// True where colours are wanted on `fd` (https://no-color.org has the meaning of NO_COLOR).
bool UsesColour(Colour colour, int fd);
// `text` in that style, and plain again behind it.
std::string Paint(std::string_view text, Style style);

// `text` as it may meet a terminal, whoever let in what it has: what is neither printable ASCII nor
// the end of a line becomes '?'.
std::string ForTerminal(std::string text);

// One line on standard error that is written over and over, and gone at the end; nothing at all
// where standard error is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool visible() const { return width_ > 0; }
  void Show(const std::string& text);

 private:
  size_t width_ = 0;
  std::string shown_;
};

}  // namespace vfio_agent
