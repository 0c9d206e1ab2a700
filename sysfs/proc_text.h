// Texts of proc: read whole, cut into lines and fields, made fit for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vfio_agent {

class Tree;

// The most that is read of one such file: routers have route tables of many megabytes.
inline constexpr size_t kProcTextLimit = size_t{16} * 1024 * 1024;

// Reads until the end of file. Files of proc that list things give short reads long before their
// end (fs/seq_file.c: whole records, a page at most), which Tree::ReadText takes for the end.
// OutOfRange above `limit`; `name` is for messages.
absl::StatusOr<std::string> ReadToEnd(int fd, std::string_view name, size_t limit);
absl::StatusOr<std::string> ReadProcText(const Tree& tree, std::string_view path,
                                         size_t limit = kProcTextLimit);

// Views into `text`; empty lines and fields are left out. Fields stand between blanks and tabs.
std::vector<std::string_view> Lines(std::string_view text);
std::vector<std::string_view> Fields(std::string_view line);
std::vector<std::string_view> Split(std::string_view text, char separator);

// The whole of `text` as a number without a sign; a "0x" in front is not taken.
std::optional<uint64_t> ParseNumber(std::string_view text, int base);

// `text` as it may stand in a message or log line: what is not printable ASCII becomes '?', and
// what is longer than `limit` is cut. A process chooses its own name, a USB device its own texts.
std::string Printable(std::string_view text, size_t limit = 128);

}  // namespace vfio_agent
