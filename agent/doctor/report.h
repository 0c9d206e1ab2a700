// How a Diagnosis is told: text for people, JSON for programs. Pure.
#pragma once

#include <string>

#include "agent/doctor/diagnosis.h"
#include "agent/text/json.h"

namespace vfio_agent {

struct TextStyle {
  bool symbols = false;  // ✓ ! ✗ ? instead of words
  bool colours = false;
  size_t width = 100;  // columns; 0: lines are not broken
};

std::string DiagnosisToText(const Diagnosis& diagnosis, const TextStyle& style);

// vfio-agent/doctor/v1.
Json DiagnosisToJson(const Diagnosis& diagnosis);

// True where text in this locale may be UTF-8, by the variables that decide (locale(7)); each may
// be null.
bool IsUtf8Locale(const char* lc_all, const char* lc_ctype, const char* lang);

}  // namespace vfio_agent
