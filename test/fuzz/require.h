// Require: what must hold of a parser's result, whatever it was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace vfio_agent {

// Ends the process where `holds` is false, so that libFuzzer keeps the input; `rule` is a sentence
// that says what should have been, `seen` what was there instead.
void Require(bool holds, std::string_view rule, std::string_view seen = "");

// An error of a parser: `code`, and words to go with it.
void RequireError(const absl::Status& status, absl::StatusCode code);

// The fuzzer's bytes as text.
inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace vfio_agent

// What libFuzzer calls with each input, and each *_fuzz.cc defines. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
