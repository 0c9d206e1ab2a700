#include "agent/listing/screen.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kClear = "\x1b[K";  // to the end of the row

size_t PlainLength(std::string_view line) {
  size_t length = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = std::min(line.find('m', i), line.size());
    } else {
      ++length;
    }
  }
  return length;
}

// A cursor that stands behind the last column stays on it, and would clear what it has just
// written.
bool FillsItsRow(std::string_view line, size_t width) {
  const size_t length = PlainLength(line);
  return width > 0 && length > 0 && length % width == 0;
}

}  // namespace

size_t RowsOf(std::string_view line, size_t width) {
  if (width == 0) return 1;
  return std::max<size_t>(1, (PlainLength(line) + width - 1) / width);
}

std::string ScreenText(std::string_view text, size_t width, size_t rows) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  std::string screen;
  size_t shown = 0;
  for (; shown < lines.size(); ++shown) {
    const std::string& line = lines[shown];
    const size_t needed = RowsOf(line, width);
    if (needed > rows) break;
    rows -= needed;
    screen += line;
    screen += FillsItsRow(line, width) ? "" : kClear;
    screen += '\n';
  }
  if (shown == lines.size()) return screen;
  return screen +
         absl::StrFormat("... %d more lines%s\n", lines.size() - shown, std::string(kClear));
}

}  // namespace vfio_agent
