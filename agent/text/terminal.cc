#include "agent/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace vfio_agent {
namespace {

constexpr size_t kNarrow = 100;
constexpr size_t kUsual = 80;  // of a terminal that does not say
constexpr char kClearLine[] = "\r\x1b[K";

const char* Variable(const char* name) {
  return std::getenv(name);
}  // NOLINT(concurrency-mt-unsafe)

bool IsDumb() {
  const char* const term = Variable("TERM");
  return term == nullptr || std::string_view(term) == "dumb" || std::string_view(term).empty();
}

// All zero where it is no terminal, or does not say.
winsize SizeOf(int fd) {
  winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

std::string_view CodeOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kChange:
      return "\x1b[33m";
    case Style::kBad:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

size_t TerminalWidth(int fd) { return SizeOf(fd).ws_col; }

size_t TerminalHeight(int fd) { return SizeOf(fd).ws_row; }

bool IsTerminal(int fd) { return ::isatty(fd) != 0 && !IsDumb(); }

size_t TextWidth() {
  const size_t width = TerminalWidth(STDOUT_FILENO);
  return width == 0 ? kNarrow : std::min(width, kNarrow);
}

size_t TableWidth() {
  if (const size_t width = TerminalWidth(STDOUT_FILENO); width > 0) return width;
  const char* const columns = Variable("COLUMNS");
  size_t width = 0;
  return columns != nullptr && absl::SimpleAtoi(columns, &width) && width > 0 ? width : kNarrow;
}

bool UsesColour(Colour colour, int fd) {
  if (colour != Colour::kAuto) return colour == Colour::kAlways;
  const char* const none = Variable("NO_COLOR");
  const bool wanted = none == nullptr || *none == '\0';
  return wanted && IsTerminal(fd);
}

std::string Paint(std::string_view text, Style style) {
  const std::string_view code = CodeOf(style);
  if (code.empty()) return std::string(text);
  return std::string(code).append(text).append("\x1b[0m");
}

std::string ForTerminal(std::string text) {
  for (char& c : text) {
    if (c != '\n' && !absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

ProgressLine::ProgressLine() {
  if (!IsTerminal(STDERR_FILENO)) return;
  const size_t width = TerminalWidth(STDERR_FILENO);
  width_ = width > 1 ? width : kUsual;
}

ProgressLine::~ProgressLine() {
  if (!shown_.empty()) std::cerr << kClearLine << std::flush;
}

void ProgressLine::Show(const std::string& text) {
  if (!visible() || text == shown_) return;
  // A line that fills the last column would wrap, and could not be taken back.
  std::cerr << kClearLine << text.substr(0, width_ - 1) << std::flush;
  shown_ = text;
}

}  // namespace vfio_agent
