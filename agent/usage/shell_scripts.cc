#include "agent/usage/shell_scripts.h"

namespace vfio_agent {
namespace {

// Asks with the line itself and not with bash's words: bash breaks words at ':' and '=', which
// addresses and groups have, and replaces only what follows the last of these.
constexpr std::string_view kBash =
    R"bash(# Completion of vfio-agent for bash. The words come from the program itself.
_vfio_agent() {
  local line=${COMP_LINE:0:COMP_POINT} kind='' word cut=''
  local current=${line##*[[:space:]]} breaks=${COMP_WORDBREAKS//[^:=]/}
  if [[ -n $breaks ]]; then cut=${current%"${current##*[$breaks]}"}; fi
  COMPREPLY=()
  {
    read -r kind
    while IFS=$'\t' read -r word _; do COMPREPLY+=("${word#"$cut"}"); done
  } < <("$1" complete -- "$line" 2>/dev/null)
  case $kind in
    file | directory)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -A "$kind" -- "${current##*=}")
      ;;
  esac
}
complete -F _vfio_agent vfio-agent
)bash";

constexpr std::string_view kZsh = R"zsh(#compdef vfio-agent
# Completion of vfio-agent for zsh. The words come from the program itself.
_vfio-agent() {
  local kind word help line="${(j: :)words[1,CURRENT-1]} $IPREFIX$PREFIX"
  local -a found shown
  {
    read -r kind
    while IFS=$'\t' read -r word help; do
      found+=("$word")
      shown+=("$word${help:+  -- $help}")
    done
  } < <("$words[1]" complete -- "$line" 2>/dev/null)
  case $kind in
    file | directory)
      [[ $PREFIX != --*=* ]] || compset -P '*='
      if [[ $kind == file ]]; then _files; else _files -/; fi
      ;;
    *) compadd -l -d shown -a found ;;
  esac
}
if [[ $funcstack[1] == _vfio-agent ]]; then
  _vfio-agent "$@"
else
  compdef _vfio-agent vfio-agent
fi
)zsh";

constexpr std::string_view kFish =
    R"fish(# Completion of vfio-agent for fish. The words come from the program itself.
function __vfio_agent_words
    set -l found (command vfio-agent complete -- (commandline -cp | string collect) 2>/dev/null)
    switch "$found[1]"
        case file
            __fish_complete_path (commandline -ct)
        case directory
            __fish_complete_directories (commandline -ct)
        case '*'
            if test (count $found) -gt 1
                printf '%s\n' $found[2..-1]
            end
    end
end
complete -c vfio-agent -f -a '(__vfio_agent_words)'
)fish";

}  // namespace

std::string_view CompletionScript(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace vfio_agent
