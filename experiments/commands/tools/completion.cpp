#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/tools/complete_words.hpp"

namespace troupe::experiments::commands {
namespace {

/// The scripts only carry words: `complete-words` of the program that is being typed answers, so
/// that they never fall behind it. Each line of the answer is "word<tab>help", or ":files".
struct Shell {
  const char* name;
  const char* script;
};

constexpr Shell kShells[] = {
    {"bash", R"sh(# Completion of troupe for bash: source <(troupe completion bash)
_troupe() {
  local words=() word line previous= files= IFS=$'\n'
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do # bash splits at "="
    if [[ $word == = || $previous == *= ]] && (( ${#words[@]} > 1 )); then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    previous=$word
  done
  local current=${words[-1]} before=
  [[ $current == *=* ]] && before=${current%=*}=
  COMPREPLY=()
  while read -r line; do
    if [[ $line == :files ]]; then
      files=1
      continue
    fi
    word=${line%%$'\t'*}
    [[ $word == *= ]] && compopt -o nospace
    COMPREPLY+=("${word#"$before"}")
  done < <("${COMP_WORDS[0]/#\~/$HOME}" complete-words "${words[@]}" 2>/dev/null)
  if [[ $files ]]; then
    compopt -o filenames
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _troupe troupe
)sh"},
    {"zsh", R"sh(#compdef troupe
# Completion of troupe for zsh: troupe completion zsh > ~/.zfunc/_troupe, where ~/.zfunc is in fpath
_troupe() {
  local line files
  local -a words_with_help assignments
  for line in ${(f)"$("${(Q)words[1]/#\~/$HOME}" complete-words "${(@Q)words[1,CURRENT]}" 2>/dev/null)"}; do
    local word=${line%%$'\t'*} help=${line#*$'\t'}
    if [[ $line == :files ]]; then
      files=1
    elif [[ $word == *= ]]; then
      assignments+=("${word//:/\\:}:$help")
    else
      words_with_help+=("${word//:/\\:}:$help")
    fi
  done
  (( ${#assignments} )) && _describe key assignments -S ''
  (( ${#words_with_help} )) && _describe troupe words_with_help
  [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _troupe ]]; then
  _troupe "$@"
else
  compdef _troupe troupe
fi
)sh"},
    {"fish",
     R"sh(# Completion of troupe for fish: troupe completion fish > ~/.config/fish/completions/troupe.fish
function __troupe_words
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (eval $before[1] complete-words (string escape -- $before "$current") 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete -c troupe -f -a '(__troupe_words)'
)sh"}};

void print_completions(const CLI::App& app, const std::vector<std::string>& line) {
  const Completions found = complete_words(
      app, {line.begin() + std::min<std::ptrdiff_t>(1, std::ssize(line)), line.end()});
  for (const auto& word : found.words) {
    std::printf("%s\t%s\n", word.text.c_str(), word.help.c_str());
  }
  if (found.files) {
    std::printf(":files\n");
  }
}

} // namespace

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "completion", "Prints a script that completes commands, options, names and keys in a shell");
  command->footer(
      "Example: troupe completion bash > ~/.local/share/bash-completion/completions/troupe\n"
      "         troupe completion zsh > ~/.zfunc/_troupe   # where fpath has ~/.zfunc\n"
      "         troupe completion fish > ~/.config/fish/completions/troupe.fish\n"
      "or, for the open shell, bash and zsh: source <(troupe completion bash)");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "shell that the script is for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell] {
    for (const Shell& one : kShells) {
      if (*shell == one.name) {
        std::fputs(one.script, stdout);
      }
    }
  });
  CLI::App* words = app.add_subcommand("complete-words", "Answers the completion scripts");
  words->footer("Example: troupe complete-words troupe train qui");
  words->group("");
  words->set_help_flag(); // all words are the shell's
  words->allow_extras();
  words->prefix_command();
  words->callback([&app, words] { print_completions(app, words->remaining()); });
}

} // namespace troupe::experiments::commands
