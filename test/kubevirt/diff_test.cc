// A KubeVirt resource beside what a node serves.
#include "agent/kubevirt/diff.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

constexpr char kName[] = "nvidia.com/GH100_H100";

ServedResource Gpus(const std::string& name = kName) {
  return {.name = name,
          .selectors = {"10DE:2330"},
          .groups = {{1, {"0000:01:00.0"}}, {2, {"0000:02:00.0"}}}};
}

PermittedDevice Entry(const std::string& name = kName, const std::string& selector = "10de:2330") {
  return {.selector = selector, .resource = name, .external = true, .where = "f.yaml:1:1"};
}

KubevirtFile With(std::vector<PermittedDevice> entries) {
  return {.configurations = {{.restricts = true, .permitted = std::move(entries)}}};
}

std::vector<Compared> Compare(const Served& served, const KubevirtFile& file) {
  return CompareWithFile(served, served, file);
}

// "entry-missing", a note in brackets; all of one subject.
std::string Codes(const Compared& compared) {
  std::string codes;
  for (const Difference& finding : compared.findings) {
    codes +=
        (codes.empty() ? "" : " ") + (finding.hinders ? finding.code : "(" + finding.code + ")");
  }
  return codes;
}
std::string CodesOf(const ServedResource& resource, const KubevirtFile& file) {
  return Codes(Compare({.resources = {resource}}, file).front());
}

TEST_CASE("an entry with name, id and external provider is all it takes", "[kubevirt]") {
  CHECK(CodesOf(Gpus(), With({Entry()})).empty());
  CHECK(AllStart(Compare({.resources = {Gpus()}}, With({Entry()}))));
}

TEST_CASE("a missing entry is told with the one to add", "[kubevirt]") {
  const auto compared = Compare({.resources = {Gpus()}}, With({}));
  CHECK(Codes(compared.front()) == "entry-missing");
  CHECK_FALSE(AllStart(compared));
  CHECK_THAT(ComparedText(compared),
             Catch::Contains("nvidia.com/GH100_H100: would not start\n  entry-missing: ") &&
                 Catch::Contains("change: add to permittedHostDevices.pciHostDevices: "
                                 "{pciVendorSelector: \"10DE:2330\", resourceName: "
                                 "nvidia.com/GH100_H100, externalResourceProvider: true}"));
}

TEST_CASE("T16: an entry without externalResourceProvider would set two plugins on one resource",
          "[kubevirt]") {
  PermittedDevice entry = Entry();
  entry.external = false;
  CHECK(CodesOf(Gpus(), With({entry})) == "not-external");
  CHECK(CodesOf(Gpus(), With({Entry(), entry})) == "not-external");
}

TEST_CASE("R55: a selector that is no device's of the resource is told", "[kubevirt]") {
  CHECK(CodesOf(Gpus(), With({Entry(kName, "10de:2331")})) == "selector-mismatch");
  CHECK(CodesOf(Gpus(), With({Entry(kName, "10de")})) == "selector-mismatch");
  CHECK(CodesOf(Gpus(), With({Entry(), Entry(kName, "10de:2331")})).empty());
  ServedResource two = Gpus();
  two.selectors.push_back("10DE:2331");
  CHECK(CodesOf(two, With({Entry()})) == "(selector-missing)");
}

TEST_CASE("an entry of mediated devices in the wrong list, or of another type, is told",
          "[kubevirt]") {
  const ServedResource vgpus{
      .name = kName, .groups = {{40, {"uuid"}}}, .mdev_types = {"GRID T4-1Q"}};
  PermittedDevice entry = Entry(kName, "GRID T4-1Q");
  entry.pci = false;
  CHECK(CodesOf(vgpus, With({entry})).empty());
  entry.selector = "GRID T4-2Q";
  CHECK(CodesOf(vgpus, With({entry})) == "(type-mismatch)");
  const auto compared = Compare({.resources = {vgpus}}, With({Entry(kName, "10DE:1EB8")}));
  CHECK(Codes(compared.front()) == "(wrong-list)");
  CHECK_THAT(ComparedText(compared),
             Catch::Contains("change: take it out there; add to "
                             "permittedHostDevices.mediatedDevices: {mdevNameSelector: \"GRID"));
}

TEST_CASE("R54: a name that differs by a letter's case or by '.' and '_' is not the name",
          "[kubevirt]") {
  for (const char* name :
       {"nvidia.com/gh100_h100", "nvidia.com/GH100.H100", "nvidia_com/GH100_H100"}) {
    CAPTURE(name);
    CHECK(CodesOf(Gpus(), With({Entry(name)})) == "name-differs");
  }
  CHECK(CodesOf(Gpus(), With({Entry("nvidia.com/GH100-H100")})) == "entry-missing");
}

TEST_CASE("R45: a second name with the same variable is told beside the right one", "[kubevirt]") {
  CHECK(CodesOf(Gpus(), With({Entry(), Entry("nvidia.com/GH100.H100")})) == "(name-collision)");
}

TEST_CASE("an entry of which this node has nothing is a note", "[kubevirt]") {
  const Served served{
      .resources = {Gpus()},
      .refused = {{.resource = "nvidia.com/R", .unit = "u", .reason = "foreign-member: x"}}};
  const auto compared =
      Compare(served, With({Entry(), Entry("nvidia.com/X"), Entry("nvidia.com/R")}));
  REQUIRE(compared.size() == 3);
  CHECK(compared[1].name == "nvidia.com/X");
  CHECK(Codes(compared[1]) == "(not-here)");
  CHECK_THAT(compared[2].findings.front().text, Catch::Contains("foreign-member: x"));
  CHECK(AllStart(compared));
  CHECK_THAT(ComparedText(compared), Catch::Contains("nvidia.com/X: not here\n"));
}

TEST_CASE("where only a part is asked for, other entries are not looked at", "[kubevirt]") {
  const Served node{.resources = {Gpus(), Gpus("nvidia.com/Z")}};
  const Served asked{.resources = {Gpus()}};
  const auto compared = CompareWithFile(asked, node, With({Entry(), Entry("nvidia.com/X")}));
  CHECK(compared.size() == 1);
}

TEST_CASE("without permittedHostDevices every name may be asked for", "[kubevirt]") {
  const KubevirtFile file{.configurations = {{.restricts = false}}};
  CHECK(CodesOf(Gpus(), file) == "(not-restricted)");
}

TEST_CASE("T32: a resource for hostDevices needs the gate, one for gpus does not", "[kubevirt]") {
  ServedResource disks = Gpus();
  disks.list = MachineList::kHostDevices;
  KubevirtFile file = With({Entry()});
  CHECK(CodesOf(disks, file) == "gate-missing");
  CHECK(CodesOf(Gpus(), file).empty());
  file.configurations.front().feature_gates.insert("HostDevices");
  CHECK(CodesOf(disks, file).empty());
}

TEST_CASE("the document has one item for each resource, with its findings", "[kubevirt]") {
  const Json json = ComparedToJson(Compare({.resources = {Gpus()}}, With({})));
  REQUIRE(json.size() == 1);
  CHECK(json[0]["kind"] == "resource");
  CHECK(json[0]["name"] == kName);
  CHECK(json[0]["outcome"] == "would not start");
  CHECK(json[0]["findings"][0]["code"] == "entry-missing");
  CHECK(json[0]["findings"][0]["hinders"] == true);
}

}  // namespace
}  // namespace vfio_agent
