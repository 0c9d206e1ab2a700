#include "agent/commands/command_table.h"

#include <algorithm>
#include <array>

#include "agent/commands/command_examples.h"
#include "agent/commands/commands.h"
#include "agent/commands/health.h"

namespace vfio_agent {
namespace {

constexpr size_t kMany = 1000;

constexpr OptionRow kAll = {.name = "all",
                            .help = "groups that nobody selected, too",
                            .set = [](Invocation& i, const std::string&) { i.all = true; }};
constexpr OptionRow kExitCode = {
    .name = "exit-code",
    .help = "tell by the exit code: 3 where something is refused, 4 where something would change",
    .set = [](Invocation& i, const std::string&) { i.exit_code = true; }};
constexpr OptionRow kDiff = {
    .name = "diff",
    .value = "FILE",
    .help =
        "compare with this file (-: standard input), a KubeVirt resource or machines; exit "
        "code 3 where something would not start",
    .set = [](Invocation& i, const std::string& file) { i.diff = file; }};
constexpr OptionRow kWatch = {.name = "watch",
                              .letter = 'w',
                              .help = "again whenever something has changed, until Ctrl-C",
                              .set = [](Invocation& i, const std::string&) { i.watch = true; }};
constexpr OptionRow kForce = {.name = "force",
                              .help = "replace the file where it is there",
                              .set = [](Invocation& i, const std::string&) { i.force = true; }};
constexpr OptionRow kMan = {.name = "man",
                            .help = "print the man page, for man -l",
                            .set = [](Invocation& i, const std::string&) { i.man = true; }};

constexpr OptionRow kGuest = {
    .name = "guest",
    .value = "libvirt|kubevirt",
    .help = "print the PCIe layout of a guest instead, as XML or YAML",
    .set = [](Invocation& i, const std::string& kind) { i.guest = kind; }};

constexpr OptionRow kPictureOutput = {
    .name = "output",
    .letter = 'o',
    .value = "table|wide|json|yaml|svg|dot",
    .help = "form of the answer",
    .set = [](Invocation& i, const std::string& word) { i.output = OutputNamed(word); },
    .fallback = "table"};

constexpr std::array<OptionRow, 2> kPlanOptions = {kAll, kExitCode};
constexpr std::array<OptionRow, 2> kListOptions = {kAll, kWatch};
constexpr std::array<OptionRow, 1> kStatusOptions = {kWatch};
constexpr std::array<OptionRow, 1> kExplainOptions = {kExitCode};
constexpr std::array<OptionRow, 1> kKubevirtOptions = {kDiff};
constexpr std::array<OptionRow, 2> kTopologyOptions = {kGuest, kPictureOutput};
constexpr std::array<OptionRow, 1> kSnapshotOptions = {kForce};
constexpr std::array<OptionRow, 1> kHelpOptions = {kMan};

constexpr ArgumentRow kSelectors = {
    .kind = "SELECTOR", .most = kMany, .help = kSelectorHelp, .meaning = kWholeGroups};
constexpr ArgumentRow kComparedDevices = {
    .kind = "SELECTOR",
    .most = kMany,
    .help = kSelectorHelp,
    .meaning =
        "it means just the devices that it names; a guest gets with them what has to move "
        "with them of the same slots"};

constexpr std::array<Command, 18> kCommands = {{
    {.name = "run",
     .summary = "the daemon: bind what the plan says, serve the kubelet",
     .manual = "SIGTERM and SIGINT end it within 2 seconds and leave devices bound, unless "
               "--on-exit says otherwise. A configuration that changes is read again by itself, "
               "and in any case at SIGHUP. A second one waits until the first has ended, and "
               "touches nothing before.",
     .examples = kRunExamples,
     .with_session = RunCommand,
     .before = DropPrivileges,
     .holds_signals = true,
     .one_form = true},
    {.name = "plan",
     .summary = "what run or bind would do and why; changes nothing",
     .manual = "Prints the shell commands that a person would type, then the refusals, each with "
               "its code and remedy.",
     .options = kPlanOptions,
     .examples = kPlanExamples,
     .exit_codes = "01234",
     .with_session = PlanCommand},
    {.name = "bind",
     .summary = "apply the plan once and leave",
     .manual = "Without SELECTOR all that the configuration selects. A group is bound whole or "
               "put back.",
     .argument = kSelectors,
     .examples = kBindExamples,
     .exit_codes = "0123",
     .with_session = BindCommand},
    {.name = "release",
     .summary = "give devices back to the drivers they came from",
     .manual =
         "Without SELECTOR what this agent has taken since the last boot, and all that it has "
         "made: virtual functions and mediated devices are removed. Refuses what a pod or a "
         "process holds, and what a running daemon serves.",
     .argument = kSelectors,
     .examples = kReleaseExamples,
     .exit_codes = "0123",
     .with_session = ReleaseCommand},
    {.name = "list",
     .summary = "tables of devices, groups, resources or slices",
     .manual =
         "Without -o wide, lines fit the terminal, 100 columns at most, and the bridges of a "
         "group are one line; --all and -o wide have one for each. With --watch a terminal is "
         "drawn anew; elsewhere the lines that are gone (-) and new (+) follow. slices: what "
         "the API server is told of resources with `serve: dra` when all is bound.",
     .argument = {.kind = "devices|groups|resources|slices",
                  .most = 1,
                  .help = "what to list [devices]"},
     .options = kListOptions,
     .examples = kListExamples,
     .with_session = ListCommand},
    {.name = "explain",
     .summary = "why a group has its members and whether it can be given away",
     .manual = "The path to the root, ACS of each port, verdict, refusals, commands.",
     .argument = {.kind = "SELECTOR",
                  .least = 1,
                  .most = kMany,
                  .help = kSelectorHelp,
                  .meaning = kWholeGroups},
     .options = kExplainOptions,
     .examples = kExplainExamples,
     .exit_codes = "0123",
     .with_session = ExplainCommand},
    {.name = "doctor",
     .summary = "what is wrong with this node, from the processor up to KubeVirt, and what to do",
     .manual =
         "Each check with what was read and the remedy. The lowest layer where a check fails is "
         "named as the likely cause of what fails above it. Warnings do not change the exit "
         "code.",
     .examples = kDoctorExamples,
     .exit_codes = "0123",
     .with_session = DoctorCommand},
    {.name = "topology",
     .summary = "how far GPUs, NICs, NVSwitches and NVMe drives are from each other",
     .manual = "The grades are NCCL's: PIX, PXB, PHB, NODE, SYS. With --guest the PCIe layout of a "
               "guest in which the devices are as near to each other as on the node.",
     .argument = kComparedDevices,
     .options = kTopologyOptions,
     .examples = kTopologyExamples,
     .with_session = TopologyCommand},
    {.name = "kubevirt",
     .summary = "what KubeVirt has to be told so that machines get what this node serves",
     .manual = "As YAML: the entries of permittedHostDevices and the devices of a machine.\n\n"
               "With --diff: what would not start with what the file has, and what to change. The "
               "file is YAML or JSON: a KubeVirt resource, its spec.configuration alone, "
               "VirtualMachine or VirtualMachineInstance objects, or a List of them.",
     .argument = kSelectors,
     .options = kKubevirtOptions,
     .examples = kKubevirtExamples,
     .exit_codes = "0123",
     .with_session = KubevirtCommand},
    {.name = "status",
     .summary = "what the running daemon holds, who has it, and how it stands with the kubelet",
     .manual =
         "Asks the daemon on status.sock in its state directory. With --watch on a terminal it "
         "is drawn anew every second; elsewhere lines that are gone and new follow. A "
         "configuration file that is not valid is told and passed over, as by the daemon.",
     .options = kStatusOptions,
     .examples = kStatusExamples,
     .alone = StatusCommand},
    {.name = "health",
     .summary = "whether the running daemon lives, by the exit code: for probes",
     .manual = "Asks it on status.sock, 5 s at most; 1 where it does not answer or its loop hangs. "
               "A configuration file that is not valid is passed over, as by the daemon.",
     .examples = kHealthExamples,
     .alone = HealthCommand,
     .one_form = true},
    {.name = "snapshot",
     .summary = "write what the program reads of the node to a file, for the report of a problem",
     .manual =
         "A tar.gz. Serial numbers, addresses, host names and the like are masked; what could "
         "not be read is named in it. Any command takes it as its --root, on any machine. The same "
         "facts give the same bytes.",
     .argument = {.kind = "FILE", .least = 1, .most = 1, .help = "the file (-: standard output)"},
     .options = kSnapshotOptions,
     .examples = kSnapshotExamples,
     .with_session = SnapshotCommand},
    {.name = "config check",
     .summary = "validate the configuration",
     .manual = "Tells the first error, with file, line, column and the key's path.",
     .examples = kCheckExamples,
     .exit_codes = "02",
     .with_session = ConfigCheckCommand,
     .one_form = true},
    {.name = "config show",
     .summary = "print the configuration that is in force",
     .manual = "With all defaults; usable as a file.",
     .examples = kShowExamples,
     .exit_codes = "02",
     .with_session = ConfigShowCommand},
    {.name = "completion",
     .summary = "print the script that completes words in a shell",
     .manual = "It completes commands, options and their words, and for SELECTOR the devices, "
               "groups and resources of this node.",
     .argument = {.kind = "bash|zsh|fish", .least = 1, .most = 1, .help = "the shell"},
     .examples = kCompletionExamples,
     .exit_codes = "02",
     .alone = CompletionCommand,
     .one_form = true},
    {.name = "version",
     .summary = "print the version",
     .manual = "With -o wide, json or yaml also what it was built from.",
     .examples = kVersionExamples,
     .exit_codes = "02",
     .alone = VersionCommand},
    {.name = "help",
     .summary = "print the help of the program or of a command",
     .argument = {.kind = "COMMAND", .most = 2, .help = "run, plan, config check ..."},
     .options = kHelpOptions,
     .examples = kHelpExamples,
     .exit_codes = "02",
     .alone = HelpCommand,
     .one_form = true},
    {.name = "complete",
     .summary = "the words that may follow: what the completion scripts ask",
     .argument = {.kind = "LINE", .least = 1, .most = 1, .help = "the line up to the cursor"},
     .exit_codes = "02",
     .alone = CompleteCommand,
     .hidden = true},
}};

}  // namespace

std::span<const Command> Commands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  const auto found = std::ranges::find(kCommands, name, &Command::name);
  return found == kCommands.end() ? nullptr : &*found;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  return names;
}

}  // namespace vfio_agent
