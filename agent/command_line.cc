#include "agent/command_line.h"

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>

#include "agent/commands.h"
#include "agent/daemon/signals.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Handler = int (*)(Session&);

struct Command {
  const char* name;
  const char* help;
  const char* argument;  // name of the positional arguments; null: none
  const char* argument_help;
  Handler handler;
};

constexpr char kSelectors[] =
    "address (0000:65:00.0 or 65:00.0), group:26, id (10de:2330), vendor (10de:) or resource";

constexpr std::array<Command, 9> kCommands = {{
    {"run", "the daemon: bind what the plan says, serve the kubelet", nullptr, nullptr, RunCommand},
    {"plan", "what run or bind would do and why; changes nothing", nullptr, nullptr, PlanCommand},
    {"bind", "apply the plan once and leave", "SELECTOR", kSelectors, BindCommand},
    {"release", "give devices back to the drivers they came from", "SELECTOR", kSelectors,
     ReleaseCommand},
    {"list", "tables of devices, groups or resources", "WHAT",
     "devices (default), groups or resources", ListCommand},
    {"explain", "why a group has its members and whether it can be given away", "SELECTOR",
     kSelectors, ExplainCommand},
    {"kubevirt", "what KubeVirt has to be told so that machines get what this node serves",
     "SELECTOR", kSelectors, KubevirtCommand},
    {"status", "what the running daemon holds, who has it, and how it stands with the kubelet",
     nullptr, nullptr, StatusCommand},
    {"doctor", "check the whole node from the firmware up, with remedies and the likely root cause",
     nullptr, nullptr, DoctorCommand},
}};

constexpr char kFooter[] =
    "Examples:\n"
    "  vfio-agent plan                     what would happen on this node\n"
    "  vfio-agent explain 65:00.0          why that card can or cannot be given away\n"
    "  vfio-agent bind group:26            bind one group, whole\n"
    "  vfio-agent release                  give back all that was bound\n"
    "  vfio-agent kubevirt --diff cr.yaml  what would not start with that KubeVirt resource\n"
    "  vfio-agent plan --root /copy -o json  the same questions about a copied tree\n"
    "Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 refused, 4 would change something";

// What the parser fills; settings only where they were given.
struct Parsed {
  Invocation invocation;
  std::string output = "table";
  std::map<std::string, std::string> flags;
};

void AddCommon(CLI::App& app, Parsed& parsed) {
  app.add_option("--config", parsed.invocation.config_file,
                 "configuration file (VFIO_AGENT_CONFIG)")
      ->capture_default_str();
  app.add_option("--root", parsed.invocation.root,
                 "read DIR/sys, DIR/proc, DIR/dev instead (VFIO_AGENT_ROOT)")
      ->capture_default_str();
  app.add_option("-o,--output", parsed.output, "table, wide, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}))
      ->capture_default_str();
  for (const SettingRow& row : SettingRows()) {
    const std::string flag = row.flag;
    app.add_option_function<std::string>(
        "--" + flag,
        [&parsed, flag](const std::string& value) { parsed.invocation.flags[flag] = value; },
        std::string(row.help) + " [" + row.fallback + "] (" + VariableOf(row) + ")");
  }
}

// These two say where settings come from, so they are no rows of the settings' table.
void TakeEnvironment(Invocation& invocation) {
  const char* const config = std::getenv("VFIO_AGENT_CONFIG");  // NOLINT(concurrency-mt-unsafe)
  const char* const root = std::getenv("VFIO_AGENT_ROOT");      // NOLINT(concurrency-mt-unsafe)
  if (config != nullptr) invocation.config_file = config;
  if (root != nullptr) invocation.root = root;
}

CLI::App* AddCommand(CLI::App& app, const Command& command, Parsed& parsed) {
  CLI::App* const sub = app.add_subcommand(command.name, command.help);
  AddCommon(*sub, parsed);
  if (command.argument != nullptr) {
    CLI::Option* const option =
        sub->add_option(command.argument, parsed.invocation.arguments, command.argument_help);
    if (std::string_view(command.name) == "list") {
      option->check(CLI::IsMember({"devices", "groups", "resources"}))->expected(0, 1);
    }
    if (std::string_view(command.name) == "explain") option->required();
  }
  const std::string_view name = command.name;
  if (name == "plan" || name == "list") {
    sub->add_flag("--all", parsed.invocation.all, "groups that nobody selected, too");
  }
  if (name == "plan" || name == "explain") {
    sub->add_flag("--exit-code", parsed.invocation.exit_code,
                  "tell by the exit code: 3 refused, 4 would change something");
  }
  if (name == "kubevirt") {
    sub->add_option("--diff", parsed.invocation.diff,
                    "compare with this file (-: standard input): a KubeVirt resource or machines; "
                    "exit code 3 where something would not start");
  }
  return sub;
}

Output OutputOf(const std::string& word) {
  if (word == "json") return Output::kJson;
  if (word == "yaml") return Output::kYaml;
  return word == "wide" ? Output::kWide : Output::kTable;
}

int RunWithSession(Parsed& parsed, Handler handler) {
  parsed.invocation.output = OutputOf(parsed.output);
  if (handler == RunCommand) HoldSignals();
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(parsed.invocation);
  if (!session.ok()) {
    PrintError(Message(session.status()));
    return absl::IsInvalidArgument(session.status()) ? kExitUsage : kExitFailed;
  }
  const Settings& settings = (*session)->settings();
  SetUpLog(settings.log_level, settings.log_format);
  return handler(**session);
}

// Edit distance, for a word that was misspelt.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

bool IsUnknownWord(const CLI::App& app, std::string_view word) {
  const auto same = [word](const CLI::App* sub) { return sub->get_name() == word; };
  return !word.starts_with('-') && app.get_subcommands(same).empty();
}

int RefuseWord(const CLI::App& app, const std::string& word) {
  PrintError("no subcommand is called '" + word + "'; see `vfio-agent help`");
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (Distance(word, sub->get_name()) <= 2) {
      PrintError("did you mean '" + sub->get_name() + "'?");
    }
  }
  return kExitUsage;
}

int Help(const std::string& overview, const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) {
    std::cout << overview;
    return kExitDone;
  }
  if (IsUnknownWord(app, words.front())) return RefuseWord(app, words.front());
  const std::vector<const CLI::App*> found = app.get_subcommands(
      [&words](const CLI::App* sub) { return sub->get_name() == words.front(); });
  std::cout << found.front()->help();
  return kExitDone;
}

}  // namespace

int RunMain(int argc, char** argv) {
  CLI::App app("Gives whole PCI devices to virtual machines on Kubernetes", "vfio-agent");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", "vfio-agent " VFIO_AGENT_VERSION);
  Parsed parsed;
  TakeEnvironment(parsed.invocation);
  AddCommon(app, parsed);  // before the subcommand as well as after it
  std::map<const CLI::App*, Handler> handlers;
  for (const Command& command : kCommands) {
    handlers[AddCommand(app, command, parsed)] = command.handler;
  }
  CLI::App* const config = app.add_subcommand("config", "check or show the configuration");
  config->require_subcommand(1);
  handlers[AddCommand(*config, {"check", "validate the file", nullptr, nullptr, nullptr}, parsed)] =
      ConfigCheckCommand;
  handlers[AddCommand(*config, {"show", "print what is in force", nullptr, nullptr, nullptr},
                      parsed)] = ConfigShowCommand;
  const CLI::App* const version =
      AddCommand(app, {"version", "print the version", nullptr, nullptr, nullptr}, parsed);
  CLI::App* const help = app.add_subcommand("help", "print this text, or that of a subcommand");
  help->add_option("SUBCOMMAND", parsed.invocation.arguments, "run, plan, …");
  const std::string overview = app.help();  // once something is parsed it would be the subcommand's
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && IsUnknownWord(app, argv[1])) return RefuseWord(app, argv[1]);
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  if (help->parsed()) return Help(overview, app, parsed.invocation.arguments);
  if (version->parsed()) return VersionCommand(OutputOf(parsed.output));
  for (const auto& [sub, handler] : handlers) {
    if (sub->parsed()) return RunWithSession(parsed, handler);
  }
  return kExitDone;
}

}  // namespace vfio_agent
