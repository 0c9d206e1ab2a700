// Which failure may come of which; verdicts that go by what else is known of the node.
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "sysfs/status.h"
#include "test/doctor/healthy.h"

namespace vfio_agent {
namespace {

CheckedFinding Failed(const std::string& name) {
  for (const Check& check : AllChecks()) {
    if (check.name == name) {
      return {.layer = check.layer, .name = name, .finding = Fail("broken", "mend it")};
    }
  }
  FAIL("there is no check " << name);
  return {};
}

// True where a failure of `upper` is told as what may come of `lower`.
bool Explains(const std::string& lower, const std::string& upper) {
  CAPTURE(lower, upper);
  const std::vector<RootCause> causes = FindCauses({Failed(lower), Failed(upper)});
  REQUIRE_FALSE(causes.empty());
  return causes.size() == 1;
}

TEST_CASE("what stops a kubelet explains that it is gone, and what it would have made",
          "[doctor]") {
  for (const char* lower : {"swap", "container runtime", "configuration", "resource managers"}) {
    for (const char* upper :
         {"kubelet", "plugin directory", "pod resources", "registration", "KubeVirt"}) {
      CHECK(Explains(lower, upper));
    }
  }
  CHECK(Explains("kubelet", "registration"));
  CHECK(Explains("plugin directory", "registration"));
  CHECK(Explains("configuration", "resource managers"));
}

TEST_CASE("no file of the kubelet's is broken because of swap or the runtime", "[doctor]") {
  for (const char* lower : {"swap", "container runtime"}) {
    CHECK_FALSE(Explains(lower, "configuration"));
    CHECK_FALSE(Explains(lower, "resource managers"));
  }
  CHECK_FALSE(Explains("plugin directory", "pod resources"));
}

TEST_CASE("a journal that has no room does not stop the kubelet", "[doctor]") {
  for (const char* upper : {"configuration", "kubelet", "plugin directory", "pod resources"}) {
    CHECK_FALSE(Explains("state directory", upper));
  }
  CHECK(Explains("state directory", "daemon"));
}

TEST_CASE("a card that is refused explains what is not registered, not who else serves it",
          "[doctor]") {
  CHECK(Explains("groups", "registration"));
  CHECK(Explains("vfio modules", "registration"));
  CHECK(Explains("reading", "daemon"));
  CHECK_FALSE(Explains("groups", "other managers"));
  CHECK_FALSE(Explains("groups", "KubeVirt"));
  CHECK_FALSE(Explains("kubelet", "daemon"));
}

Finding One(const DoctorFacts& facts, std::string_view check) {
  const Findings answers = Answers(facts, check);
  REQUIRE(answers.size() == 1);
  return answers.front();
}

TEST_CASE("a daemon that hangs is not called one that does not run", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.agent = absl::DeadlineExceededError("nothing within 3s");
  CHECK(One(facts, "writes").read == "not asked: the daemon does not answer");
  CHECK(One(facts, "registration").read == "not asked: the daemon does not answer");
  facts.agent = absl::NotFoundError("no agent answers");
  CHECK(One(facts, "writes").read == "not asked: the daemon does not run");
}

DoctorFacts IommuOff(const FirmwareFacts& firmware) {
  DoctorFacts facts = HealthyFacts();
  facts.firmware = firmware;
  facts.picture->facts.iommu = {
      .state = IommuState::kOff,
      .evidence = {"no group", "the kernel command line has no intel_iommu=on (AMD needs none)"}};
  return facts;
}

Fact<std::vector<std::string>> Tables(const std::vector<std::string>& tables) {
  return Fact<std::vector<std::string>>(tables);
}

TEST_CASE("of a virtual machine without an IOMMU nobody is sent to the firmware", "[doctor]") {
  const DoctorFacts facts =
      IommuOff({.maker = CpuMaker::kIntel, .is_guest = true, .iommu_tables = Tables({})});
  const Finding finding = One(facts, "IOMMU");
  CHECK(finding.state == State::kFail);
  CHECK_THAT(finding.remedy, Catch::Contains("virtual IOMMU") && !Catch::Contains("VT-d"));
}

TEST_CASE("mediated devices alone do without an IOMMU, whole devices beside them do not",
          "[doctor]") {
  DoctorFacts facts = IommuOff({.maker = CpuMaker::kAmd, .iommu_tables = Tables({})});
  GroupPlan parent{.verdict = Verdict::kBound, .makes_mdevs = true};
  facts.picture->plan.groups = {parent, {.verdict = Verdict::kUnselected}};
  CHECK(One(facts, "IOMMU").state == State::kOk);
  facts.picture->plan.groups.push_back({.verdict = Verdict::kRefused});
  CHECK(One(facts, "IOMMU").state == State::kFail);
  facts.picture->plan.groups.clear();
  CHECK(One(facts, "IOMMU").state == State::kFail);
}

TEST_CASE("an AMD machine is not told of Intel's word on the command line", "[doctor]") {
  const Finding on =
      One(IommuOff({.maker = CpuMaker::kAmd, .iommu_tables = Tables({"IVRS"})}), "IOMMU");
  CHECK(on.read == "off: no group");
  CHECK_THAT(on.remedy, Catch::Contains("the firmware has AMD-Vi on") &&
                            Catch::Contains("amd_iommu=off") && !Catch::Contains("intel_iommu"));
  const Finding off = One(IommuOff({.maker = CpuMaker::kAmd, .iommu_tables = Tables({})}), "IOMMU");
  CHECK_THAT(off.remedy, Catch::StartsWith("switch AMD-Vi") && !Catch::Contains("intel_iommu"));
}

TEST_CASE("an Intel machine whose firmware has it on is sent to the command line", "[doctor]") {
  const Finding on =
      One(IommuOff({.maker = CpuMaker::kIntel, .iommu_tables = Tables({"DMAR"})}), "IOMMU");
  CHECK_THAT(on.read, Catch::Contains("no intel_iommu=on"));
  CHECK_THAT(on.remedy,
             Catch::Contains("boot with intel_iommu=on") && !Catch::Contains("switch VT-d"));
}

// A user who is not root, with a kubelet whose directory is root's.
DoctorFacts SeenByNobody() {
  DoctorFacts facts = HealthyFacts();
  KubeletFacts& kubelet = facts.kubelet;
  kubelet.files_seen = false;
  kubelet.plugin_dir = ErrnoStatus(EACCES, "open");
  kubelet.socket.state = SocketState::kUnclear;
  kubelet.socket.error = EACCES;
  kubelet.pods.reset();
  kubelet.pods_socket.state = SocketState::kAbsent;
  kubelet.checkpoint.error = "Permission denied";
  return facts;
}

TEST_CASE("who may not look into the kubelet's directory is told to be root, and no cause",
          "[doctor]") {
  DoctorFacts facts = SeenByNobody();
  const auto socket = GENERATE(SocketState::kUnclear, SocketState::kAbsent);
  const bool process = GENERATE(true, false);
  facts.kubelet.socket.state = socket;
  if (!process) facts.kubelet.process.reset();
  for (const char* check : {"kubelet", "plugin directory", "pod resources", "checkpoint"}) {
    CAPTURE(check);
    CHECK(One(facts, check).state == State::kUnknown);
    CHECK(One(facts, check).remedy == "run it as root");
  }
  CHECK(Diagnose(facts).causes.empty());
}

TEST_CASE("a node without the kubelet's configuration has not joined", "[doctor]") {
  DoctorFacts facts = HealthyFacts();
  facts.kubelet.process.reset();
  facts.kubelet.socket.state = SocketState::kDead;
  facts.kubelet.config_error = "/var/lib/kubelet/config.yaml: No such file or directory";
  facts.kubelet.config_missing = true;
  const Finding finding = One(facts, "configuration");
  CHECK(finding.state == State::kFail);
  CHECK_THAT(finding.read, Catch::StartsWith("/var/lib/kubelet/config.yaml is not there: this node "
                                             "has not joined"));
  CHECK_THAT(finding.remedy, Catch::Contains("kubeadm join"));
  facts.view = View::kCopy;
  CHECK(One(facts, "configuration").state == State::kUnknown);
}

}  // namespace
}  // namespace vfio_agent
