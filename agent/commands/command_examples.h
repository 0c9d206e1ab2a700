// The examples in the commands' help, for the command table only.
#pragma once

#include <array>

#include "agent/commands/command_table.h"

namespace vfio_agent {

inline constexpr std::array<ExampleRow, 2> kRunExamples = {{
    {"vfio-agent run", "as the DaemonSet and the systemd unit start it"},
    {"vfio-agent run --on-exit release --metrics-listen ''",
     "give back at the end what nobody holds; no HTTP"},
}};
inline constexpr std::array<ExampleRow, 3> kPlanExamples = {{
    {"vfio-agent plan", "what would happen on this node"},
    {"vfio-agent plan --exit-code", "4 where bind would write something: for scripts"},
    {"vfio-agent plan --root /copy -o json", "the same question about a copied tree"},
}};
inline constexpr std::array<ExampleRow, 2> kBindExamples = {{
    {"vfio-agent bind", "all that the configuration selects"},
    {"vfio-agent bind group:23", "one group, whole"},
}};
inline constexpr std::array<ExampleRow, 2> kReleaseExamples = {{
    {"vfio-agent release", "give back all that this agent has taken"},
    {"vfio-agent release 1b:00.0", "the group of one device, whoever bound it"},
}};
inline constexpr std::array<ExampleRow, 5> kListExamples = {{
    {"vfio-agent list --all", "every function, by group; those without one last"},
    {"vfio-agent list resources --watch", "while a VM starts"},
    {"vfio-agent list resources", "the units, and which pods have them"},
    {"vfio-agent list groups -o json", "for jq"},
    {"vfio-agent list slices -o yaml", "the ResourceSlices of what is served by DRA"},
}};
inline constexpr std::array<ExampleRow, 2> kExplainExamples = {{
    {"vfio-agent explain 1b:00.0", "why that card can or cannot be given away"},
    {"vfio-agent explain group:23", "the same by the group's number"},
}};
inline constexpr std::array<ExampleRow, 2> kKubevirtExamples = {{
    {"vfio-agent kubevirt", "all that this node serves"},
    {"vfio-agent kubevirt --diff cr.yaml", "what would not start with that KubeVirt resource"},
}};
inline constexpr std::array<ExampleRow, 2> kStatusExamples = {{
    {"vfio-agent status", "units, pods, registrations, writes under way"},
    {"vfio-agent status -o wide", "with all reasons in full"},
}};
inline constexpr std::array<ExampleRow, 1> kHealthExamples = {{
    {"vfio-agent health", "as the DaemonSet's probes ask"},
}};
inline constexpr std::array<ExampleRow, 2> kDoctorExamples = {{
    {"vfio-agent doctor", "why this node offers nothing"},
    {"vfio-agent doctor -o json", "for scripts: every check with its state"},
}};
inline constexpr std::array<ExampleRow, 3> kTopologyExamples = {{
    {"vfio-agent topology", "how far GPUs, NICs and drives are from each other"},
    {"vfio-agent topology -o svg > node.svg", "the same as a picture"},
    {"vfio-agent topology --guest libvirt 1b:00.0", "a guest's layout that keeps it"},
}};
inline constexpr std::array<ExampleRow, 3> kSnapshotExamples = {{
    {"vfio-agent snapshot node.tar.gz", "what the report of a problem needs"},
    {"vfio-agent snapshot - > node.tar.gz", "from a pod, by kubectl exec"},
    {"vfio-agent snapshot --force node.tar.gz", "in place of an earlier one"},
}};
inline constexpr std::array<ExampleRow, 1> kCheckExamples = {{
    {"vfio-agent config check --config new.yaml", "before it goes into the ConfigMap"},
}};
inline constexpr std::array<ExampleRow, 1> kShowExamples = {{
    {"vfio-agent config show", "defaults, file, environment and flags together"},
}};
inline constexpr std::array<ExampleRow, 2> kCompletionExamples = {{
    {"vfio-agent completion bash > /etc/bash_completion.d/vfio-agent", "for every user"},
    {"vfio-agent completion fish | source", "in this shell only"},
}};
inline constexpr std::array<ExampleRow, 1> kVersionExamples = {{
    {"vfio-agent version -o json", "for bug reports"},
}};
inline constexpr std::array<ExampleRow, 2> kHelpExamples = {{
    {"vfio-agent help bind", "one command"},
    {"vfio-agent help --man > vfio-agent.8", "the man page"},
}};

}  // namespace vfio_agent
