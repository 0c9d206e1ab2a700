// Screen: a text cut to what a terminal can show at once. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vfio_agent {

// How many rows of a terminal that is `width` columns wide (0: it does not say) a line takes.
// Colours take no room.
size_t RowsOf(std::string_view line, size_t width);

// The lines of `text` that fit `rows`, to be written over what stands there, each cleared to its
// end; in place of those that do not fit a line that counts them.
std::string ScreenText(std::string_view text, size_t width, size_t rows);

}  // namespace vfio_agent
