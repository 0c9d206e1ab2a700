#include "agent/usage/manual.h"

#include <array>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "agent/commands/command_table.h"
#include "agent/usage/help_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kLine = 98;

constexpr std::string_view kDescription =
    "Reads the PCI devices of a node, says which IOMMU groups can be given away, takes whole "
    "groups from their host drivers to vfio-pci, and serves them to the kubelet as a device "
    "plugin, "
    "so that KubeVirt can start machines with them.\n\n"
    "A group is bound whole or not at all. What cannot be given away, what the host uses and what "
    "a "
    "guest holds is refused for all its reasons, each with a code and a remedy, before the first "
    "write. `vfio-agent plan` prints what would be done as the shell commands that a person would "
    "type.";

struct FileRow {
  std::string_view path;
  std::string_view text;
};
constexpr std::array<FileRow, 7> kFiles = {{
    {kDefaultConfigFile, "Configuration. An example with all keys comes with the program."},
    {"/var/lib/vfio-agent/devices/",
     "The journal: for each device that was taken, the driver that it came from and how far the "
     "plan is."},
    {"/var/lib/vfio-agent/agent.lock", "Held by the daemon, with its process number."},
    {"/var/lib/vfio-agent/status.sock", "Where `vfio-agent status` asks."},
    {"/var/lib/vfio-agent/locks/", "Held by the process that writes to a group."},
    {"/var/run/cdi/vfio-agent-*.json", "CDI specs, where --cdi-dir asks for them."},
    {"/etc/kubernetes/node-feature-discovery/features.d/vfio-agent",
     "Labels of the node, where --nfd-dir asks for them."},
}};

// Text as roff: no character of it is taken for markup.
std::string Escaped(std::string_view text) {
  return absl::StrReplaceAll(std::string(text), {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}});
}

// One line of text: what stands between ` is bold, also over the ends of lines.
std::string Marked(std::string_view line, bool& bold) {
  std::string roff = line.starts_with('.') ? "\\&" : "";
  for (const char& c : line) {
    if (c == '`') bold = !bold;
    roff += c == '`' ? (bold ? "\\fB" : "\\fR") : Escaped({&c, 1});
  }
  return roff + "\n";
}

std::string Prose(std::string_view text) {
  std::string roff;
  const std::vector<std::string> paragraphs =
      absl::StrSplit(std::string(text), "\n\n", absl::SkipEmpty());
  for (const std::string& paragraph : paragraphs) {
    if (!roff.empty()) roff += ".PP\n";
    bool bold = false;
    for (const std::string& line : Wrap(paragraph, kLine)) roff += Marked(line, bold);
  }
  return roff;
}

std::string Section(std::string_view title) {
  return absl::StrFormat(".SH %s\n", std::string(title));
}

// Something to the left in bold, and what it means.
std::string Tagged(std::string_view tag, std::string_view text) {
  return absl::StrFormat(".TP\n.B %s\n%s", Escaped(tag), Prose(text));
}

std::string Option(const OptionRow& row) {
  std::string text(row.help);
  if (!row.fallback.empty()) text += absl::StrFormat("; default: %s", std::string(row.fallback));
  return Tagged(OptionSynopsis(row), text + ".");
}

std::string CommandEntry(const Command& command) {
  std::string tag = Synopsis(command).substr(std::string_view("vfio-agent ").size());
  std::string options;
  for (const OptionRow& row : command.options) {
    options += absl::StrFormat(" [--%s%s%s]", std::string(row.name), row.value.empty() ? "" : " ",
                               std::string(row.value));
  }
  tag = absl::StrReplaceAll(tag, {{" [OPTION...]", options}});
  std::string text = absl::StrFormat("%s.", std::string(command.summary));
  if (!command.manual.empty()) text += " " + std::string(command.manual);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  std::string entry = Tagged(tag, absl::StrReplaceAll(text, {{"\n\n", " "}}));
  if (command.options.empty()) return entry;
  entry += ".RS\n";
  for (const OptionRow& row : command.options) entry += Option(row);
  return entry + ".RE\n";
}

std::string CommandSection() {
  std::string text = Section("COMMANDS");
  for (const Command& command : Commands()) {
    if (!command.hidden) text += CommandEntry(command);
  }
  return text + ".PP\n.I SELECTOR\n" +
         Prose("is " + ArgumentHelp(FindCommand("bind")->argument) +
               " (topology: just the devices).");
}

std::string OptionSection() {
  std::string text = Section("OPTIONS");
  for (const OptionRow& row : CommonOptions()) text += Option(row);
  text += ".PP\n";
  text += Prose(
      "Each of the following can also be set in the file and by an environment variable "
      "VFIO_AGENT_FLAG (for example VFIO_AGENT_UNBIND_TIMEOUT); the order is flag, environment, "
      "file, default. VFIO_AGENT_CONFIG and VFIO_AGENT_ROOT stand for --config and --root.");
  for (const OptionRow& row : SettingOptions()) text += Option(row);
  return text;
}

std::string ExitSection() {
  std::string text = Section("EXIT STATUS");
  for (const char digit : std::string_view("01234")) {
    std::string meaning(ExitCodeHelp(digit));
    if (digit == '4') meaning += " (plan --exit-code)";
    text += Tagged(std::string(1, digit), meaning + ".");
  }
  return text;
}

std::string ExampleSection() {
  std::string text = Section("EXAMPLES");
  for (const Command& command : Commands()) {
    for (const ExampleRow& row : command.examples) {
      text += Tagged(row.line, std::string(row.meaning) + ".");
    }
  }
  return text;
}

}  // namespace

std::string ManualPage() {
  std::string text =
      ".\\\" Made by `vfio-agent help --man`: change agent/commands/command_table.cc, then make it "
      "anew.\n"
      ".TH VFIO\\-AGENT 8 \"\" \"vfio\\-agent\" \"System administration\"\n";
  text += Section("NAME") +
          "vfio\\-agent \\- give whole PCI devices to virtual machines on Kubernetes\n";
  text += Section("SYNOPSIS") +
          ".B vfio\\-agent\n.I COMMAND\n.RI [ OPTION ...]\n.RI [ SELECTOR ...]\n.br\n"
          ".B vfio\\-agent\n.RB [ \\-h | \\-\\-help | \\-\\-version ]\n";
  text += Section("DESCRIPTION") + Prose(kDescription);
  text += CommandSection() + OptionSection() + ExitSection();
  text += Section("FILES");
  for (const FileRow& row : kFiles) text += Tagged(row.path, row.text);
  text += ExampleSection();
  text += Section("SEE ALSO") +
          ".BR lspci (8),\n.BR driverctl (8),\nand OPERATING.md, which has a section for each "
          "refusal code and each log event.\n";
  return text;
}

}  // namespace vfio_agent
