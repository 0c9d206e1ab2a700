// Which failure is the cause of which, and how that is told.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "absl/strings/str_join.h"
#include "agent/doctor/report.h"
#include "test/doctor/healthy.h"

namespace vfio_agent {
namespace {

CheckedFinding Failed(Layer layer, const std::string& name) {
  return {.layer = layer, .name = name, .finding = Fail(name + " is broken", "mend " + name)};
}

// "swap: kubelet, registration" for each cause.
std::string Causes(const std::vector<CheckedFinding>& findings) {
  std::vector<std::string> lines;
  for (const RootCause& cause : FindCauses(findings)) {
    std::vector<std::string> follows;
    for (const size_t place : cause.explains) follows.push_back(findings[place].name);
    lines.push_back(findings[cause.cause].name + ": " + absl::StrJoin(follows, ", "));
  }
  return absl::StrJoin(lines, "; ");
}

TEST_CASE("the lowest failure explains those that rest on it", "[doctor]") {
  CHECK(Causes({Failed(Layer::kHost, "swap"), Failed(Layer::kKubelet, "kubelet"),
                Failed(Layer::kKubelet, "pod resources"), Failed(Layer::kAgent, "registration")}) ==
        "swap: kubelet, pod resources, registration");
  CHECK(Causes({Failed(Layer::kFirmware, "firmware IOMMU"), Failed(Layer::kKernel, "IOMMU"),
                Failed(Layer::kDevices, "groups")}) == "firmware IOMMU: IOMMU, groups");
}

TEST_CASE("a card that is refused does not stop the kubelet", "[doctor]") {
  CHECK(Causes({Failed(Layer::kDevices, "groups"), Failed(Layer::kKubelet, "kubelet"),
                Failed(Layer::kAgent, "registration")}) ==
        "groups: registration; kubelet: registration");
}

TEST_CASE("of one layer the first failure explains the others only where they rest on it",
          "[doctor]") {
  CHECK(Causes({Failed(Layer::kDevices, "groups"), Failed(Layer::kDevices, "power and bus")}) ==
        "groups: ; power and bus: ");
  CHECK(Causes({Failed(Layer::kKernel, "command line"), Failed(Layer::kKernel, "IOMMU")}) ==
        "command line: IOMMU");
}

TEST_CASE("warnings and what is unknown are no causes", "[doctor]") {
  CHECK(FindCauses({{.layer = Layer::kHost, .finding = Warn("low", "")},
                    {.layer = Layer::kKubelet, .finding = Unknown("far")}})
            .empty());
}

TEST_CASE("checks come in the order of their layers", "[doctor]") {
  Layer last = Layer::kProcessor;
  for (const Check& check : AllChecks()) {
    CAPTURE(check.name);
    CHECK(last <= check.layer);
    last = check.layer;
  }
}

Diagnosis SeedCase() {
  Diagnosis diagnosis;
  diagnosis.findings = {{.layer = Layer::kKernel, .name = "IOMMU", .finding = Ok("on")},
                        Failed(Layer::kHost, "swap"),
                        Failed(Layer::kKubelet, "kubelet"),
                        {.layer = Layer::kAgent, .name = "daemon", .finding = Warn("down", "up")}};
  diagnosis.findings[1].finding.code = Code::kIommuOff;
  diagnosis.causes = FindCauses(diagnosis.findings);
  return diagnosis;
}

TEST_CASE("the text has marks by words, remedies, the cause and what may come of it", "[doctor]") {
  CHECK(DiagnosisToText(SeedCase(), {}) ==
        "seen from the host\n"
        "kernel\n"
        "  ok   IOMMU             on\n"
        "host\n"
        "  FAIL swap              iommu-off: swap is broken\n"
        "                         remedy: mend swap\n"
        "kubelet\n"
        "  FAIL kubelet           kubelet is broken\n"
        "                         remedy: mend kubelet\n"
        "agent\n"
        "  warn daemon            down\n"
        "                         remedy: up\n"
        "\n"
        "1 ok, 1 warning, 2 failed, 0 unknown\n"
        "likely root cause: swap (host): swap is broken\n"
        "  remedy: mend swap\n"
        "  may come of it: kubelet (kubelet)\n");
}

TEST_CASE("symbols and colours are for those who want them", "[doctor]") {
  CHECK_THAT(DiagnosisToText(SeedCase(), {.symbols = true}), Catch::Contains("  ✗ swap  "));
  const std::string coloured = DiagnosisToText(SeedCase(), {.symbols = true, .colours = true});
  CHECK_THAT(coloured, Catch::Contains("\x1b[31m✗\x1b[0m swap"));
  CHECK(DiagnosisToText(SeedCase(), {}).find('\x1b') == std::string::npos);
}

TEST_CASE("lines fit the width, and controls do not reach a terminal", "[doctor]") {
  Diagnosis diagnosis = SeedCase();
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a word ";
  diagnosis.findings[1].finding.read = text + "\x1b[2J";
  const std::string told = DiagnosisToText(diagnosis, {.width = 60});
  CHECK(told.find('\x1b') == std::string::npos);
  std::istringstream lines(told);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 60);
  }
}

TEST_CASE("the document has schema, checks and causes by their places", "[doctor]") {
  const Json json = DiagnosisToJson(SeedCase());
  CHECK(json.at("schema") == "vfio-agent/doctor/v1");
  CHECK(json.at("view") == "host");
  CHECK(json.at("healthy") == false);
  const Json& swap = json.at("checks").at(1);
  CHECK(swap == Json({{"layer", "host"},
                      {"check", "swap"},
                      {"state", "fail"},
                      {"read", "swap is broken"},
                      {"remedy", "mend swap"},
                      {"code", "iommu-off"}}));
  CHECK(json.at("checks").at(0).at("remedy").is_null());
  CHECK(json.at("root_causes") == Json::parse(R"([{"check": 1, "explains": [2]}])"));
}

TEST_CASE("the first variable that is set says whether text may be UTF-8", "[doctor]") {
  CHECK(IsUtf8Locale(nullptr, nullptr, "C.UTF-8"));
  CHECK(IsUtf8Locale("de_DE.utf8", "C", "C"));
  CHECK_FALSE(IsUtf8Locale("C", nullptr, "en_US.UTF-8"));
  CHECK(IsUtf8Locale("", "", "en_US.UTF-8"));
  CHECK_FALSE(IsUtf8Locale(nullptr, nullptr, nullptr));
}

TEST_CASE("each check has its row in the operator's guide", "[doctor]") {
  std::ifstream file(std::string(PACKAGING) + "/OPERATING.md");
  std::stringstream guide;
  guide << file.rdbuf();
  for (const Check& check : AllChecks()) {
    CHECK_THAT(guide.str(), Catch::Contains("| " + std::string(check.name) + " |"));
  }
}

}  // namespace
}  // namespace vfio_agent
