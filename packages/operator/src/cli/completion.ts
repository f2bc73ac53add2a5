import type { Command } from 'commander';

/** Words that can follow a command path, such as `mirror verify`: subcommands and flags. */
interface Words {
  /** Path below the program; empty for the program itself. */
  readonly path: string;
  readonly words: readonly string[];
}

/** Returns the completions of a program, for every command. */
export function wordsOf(command: Command, path = ''): readonly Words[] {
  const flags = command.options.flatMap(({ long }) => long ?? []);
  const subcommands = command.commands.map((each) => each.name());
  return [
    { path, words: [...subcommands, ...flags, '--help'] },
    ...command.commands.flatMap((each) => wordsOf(each, `${path} ${each.name()}`.trim())),
  ];
}

/** Returns a completion script. The shell is one of `bash`, `zsh` and `fish`. */
export function completionScript(program: Command, shell: string): string {
  const words = wordsOf(program);
  if (shell === 'fish') return fishScript(words);
  return shell === 'zsh'
    ? `#compdef vmwright\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(words)}`
    : bashScript(words);
}

function bashScript(all: readonly Words[]): string {
  const cases = all.map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`);
  return `# Completion of vmwright. Load it with: source <(vmwright completion bash)
_vmwright() {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _vmwright vmwright kubectl-vmwright`;
}

function fishScript(all: readonly Words[]): string {
  const lines = all.flatMap(({ path, words }) => {
    const condition =
      path === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${path.split(' ').at(-1)}`;
    return words.map((word) =>
      word.startsWith('--')
        ? `complete -c vmwright -n '${condition}' -l ${word.slice(2)}`
        : `complete -c vmwright -f -n '${condition}' -a ${word}`,
    );
  });
  return `# Completion of vmwright. Load it with: vmwright completion fish | source\n${lines.join('\n')}`;
}
