#include "test/agent/exposition.h"

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

namespace vfio_agent {
namespace {

const std::regex kComment(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
const std::regex kSample(
    R"rx(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\"n])*"(,[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\"n])*")*\})? (\S+))rx");
const std::set<std::string> kTypes = {"counter", "gauge", "histogram"};

class Reader {
 public:
  Exposed Read(const std::string& text) {
    if (!text.empty() && text.back() != '\n') Fault("no newline at the end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) ReadLine(line);
    return exposed_;
  }

 private:
  void Fault(const std::string& what) { exposed_.faults.push_back(what); }

  void ReadLine(const std::string& line) {
    std::smatch match;
    if (std::regex_match(line, match, kComment)) {
      if (match[1] == "HELP") return;
      family_ = match[2];
      if (!kTypes.contains(match[3])) Fault("no such type: " + line);
      if (!exposed_.types.emplace(family_, match[3]).second) Fault("a family twice: " + line);
    } else if (std::regex_match(line, match, kSample)) {
      ReadSample(line, match);
    } else {
      Fault("not a line: " + line);
    }
  }

  void ReadSample(const std::string& line, const std::smatch& match) {
    const std::string name = match[1];
    const bool histogram = !family_.empty() && exposed_.types[family_] == "histogram";
    const std::string rest = name.starts_with(family_) ? name.substr(family_.size()) : "?";
    const bool suffix = rest == "_bucket" || rest == "_sum" || rest == "_count";
    if (family_.empty() || (histogram ? !suffix : !rest.empty()))
      Fault("not of its family: " + line);
    const std::string number = match[6];
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (end == number.c_str() || *end != '\0') Fault("no number: " + line);
    if (!exposed_.samples.emplace(name + match[2].str(), value).second) Fault("twice: " + line);
  }

  Exposed exposed_;
  std::string family_;
};

}  // namespace

Exposed ReadExposition(const std::string& text) { return Reader().Read(text); }

}  // namespace vfio_agent
