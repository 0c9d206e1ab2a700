#include "agent/doctor/report.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/text/terminal.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kMarkWidth = 4;   // of the words; a symbol has one column
constexpr size_t kNameWidth = 18;  // of the longest name, and two more

struct Mark {
  std::string_view symbol;
  std::string_view word;
  Style style;
};
// By State.
constexpr std::array<Mark, 5> kMarks = {{{"✓", "ok", Style::kGood},
                                         {"!", "warn", Style::kChange},
                                         {"✗", "FAIL", Style::kBad},
                                         {"?", "?", Style::kDim},
                                         {"-", "-", Style::kDim}}};

std::string MarkOf(State state, const TextStyle& style) {
  const Mark& mark = kMarks.at(static_cast<size_t>(state));
  std::string text(style.symbols ? mark.symbol : mark.word);
  if (!style.symbols) text.resize(kMarkWidth, ' ');
  return style.colours ? Paint(text, mark.style) : text;
}

// What a terminal shows: bytes of an UTF-8 character after its first take no column.
size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Controls never reach a terminal, whoever let them in.
std::string Clean(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return clean;
}

// `text` broken at blanks, from the second line on behind `indent` blanks; `used`: columns of the
// first line that are taken.
std::string Wrap(std::string_view text, size_t used, size_t indent, size_t width) {
  std::string wrapped;
  size_t column = used;
  for (const std::string_view word : Split(text, ' ')) {
    const bool first = wrapped.empty();
    if (!first && width != 0 && column + 1 + Columns(word) > width) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += Columns(word);
  }
  return wrapped + "\n";
}

std::string FindingText(const CheckedFinding& checked, const TextStyle& style) {
  const Finding& finding = checked.finding;
  const size_t mark = style.symbols ? 1 : kMarkWidth;
  const size_t indent = 2 + mark + 1 + kNameWidth;
  std::string name = checked.name;
  name.resize(std::max(kNameWidth, name.size()), ' ');
  std::string read = Clean(finding.read);
  if (finding.code) read = absl::StrFormat("%s: %s", CodeName(*finding.code), read);
  std::string text = absl::StrFormat("  %s %s%s", MarkOf(finding.state, style), name,
                                     Wrap(read, indent, indent, style.width));
  if (finding.remedy.empty() || finding.state == State::kOk) return text;
  const std::string remedy = "remedy: " + Clean(finding.remedy);
  return text + std::string(indent, ' ') + Wrap(remedy, indent, indent + 2, style.width);
}

// "swap (host)".
std::string Spell(const CheckedFinding& checked) {
  return absl::StrFormat("%s (%s)", checked.name, Name(checked.layer));
}

std::string CauseText(const Diagnosis& diagnosis, const RootCause& cause, const TextStyle& style) {
  const CheckedFinding& checked = diagnosis.findings[cause.cause];
  std::string text =
      absl::StrFormat("likely root cause: %s: %s", Spell(checked), Clean(checked.finding.read));
  text = Wrap(text, 0, 2, style.width);
  if (!checked.finding.remedy.empty()) {
    text += "  " + Wrap("remedy: " + Clean(checked.finding.remedy), 2, 4, style.width);
  }
  std::vector<std::string> follows;
  for (const size_t place : cause.explains) {
    const std::string spelt = Spell(diagnosis.findings[place]);
    if (std::ranges::count(follows, spelt) == 0) follows.push_back(spelt);
  }
  if (follows.empty()) return text;
  return text + "  " + Wrap("may come of it: " + absl::StrJoin(follows, ", "), 2, 4, style.width);
}

size_t Count(const Diagnosis& diagnosis, State state) {
  return static_cast<size_t>(std::ranges::count_if(
      diagnosis.findings, [state](const auto& checked) { return checked.finding.state == state; }));
}

std::string_view SeenFrom(View view) {
  constexpr std::array<std::string_view, 3> kTexts = {
      "seen from the host", "seen from a pod: what it does not see of the host is marked unknown",
      "seen in a copy: nothing can be asked there"};
  return kTexts.at(static_cast<size_t>(view));
}

}  // namespace

std::string DiagnosisToText(const Diagnosis& diagnosis, const TextStyle& style) {
  std::string text = std::string(SeenFrom(diagnosis.view)) + "\n";
  std::optional<Layer> layer;
  for (const CheckedFinding& checked : diagnosis.findings) {
    if (layer != checked.layer) text += absl::StrFormat("%s\n", Name(checked.layer));
    layer = checked.layer;
    text += FindingText(checked, style);
  }
  text += absl::StrFormat("\n%d ok, %d to look at, %d failed, %d unknown, %d skipped\n",
                          Count(diagnosis, State::kOk), Count(diagnosis, State::kWarn),
                          Count(diagnosis, State::kFail), Count(diagnosis, State::kUnknown),
                          Count(diagnosis, State::kSkipped));
  for (const RootCause& cause : diagnosis.causes) text += CauseText(diagnosis, cause, style);
  return text;
}

Json DiagnosisToJson(const Diagnosis& diagnosis) {
  Json checks = Json::array();
  for (const CheckedFinding& checked : diagnosis.findings) {
    const Finding& finding = checked.finding;
    checks.push_back(
        {{"layer", std::string(Name(checked.layer))},
         {"check", checked.name},
         {"state", std::string(Name(finding.state))},
         {"read", finding.read},
         {"remedy", finding.remedy.empty() ? Json(nullptr) : Json(finding.remedy)},
         {"code", finding.code ? Json(std::string(CodeName(*finding.code))) : Json(nullptr)}});
  }
  Json causes = Json::array();
  for (const RootCause& cause : diagnosis.causes) {
    causes.push_back({{"check", cause.cause}, {"explains", cause.explains}});
  }
  return {{"schema", "vfio-agent/doctor/v1"},
          {"view", std::string(Name(diagnosis.view))},
          {"healthy", Count(diagnosis, State::kFail) == 0},
          {"checks", checks},
          {"root_causes", causes}};
}

bool IsUtf8Locale(const char* lc_all, const char* lc_ctype, const char* lang) {
  for (const char* value : {lc_all, lc_ctype, lang}) {
    if (value == nullptr || *value == '\0') continue;  // the next one decides
    const std::string name = absl::AsciiStrToLower(value);
    return name.find("utf-8") != name.npos || name.find("utf8") != name.npos;
  }
  return false;
}

}  // namespace vfio_agent
