/**
 * Whether a shell command is known to change nothing. Anything the small parser does not fully understand (expansion,
 * redirection, globs, substitution) is not known. False only costs a question.
 */
export function isKnownReadOnly(command: string): boolean {
  const commands = parseSimpleCommands(command);
  return commands !== undefined && commands.length > 0 && commands.every(isReadOnlyArgv);
}

const MAX_COMMAND_CHARS = 4096;

/** The argv of each command in a list joined by `&&`, `||`, `;` or `|`; undefined when anything else is in it. */
export function parseSimpleCommands(text: string): string[][] | undefined {
  if (text.length > MAX_COMMAND_CHARS) return undefined;
  const commands: string[][] = [];
  let argv: string[] = [];
  // Sticky: each token starts where the last one ended, so nothing is skipped.
  const token = /[ \t]+|(?<operator>&&|\|\||[;|])|(?<word>(?:[\w./:=@%+,^-]|(?<=\w)~|'[^'\n]*'|"[^"$`\\!\n]*")+)/y;
  while (token.lastIndex < text.length) {
    const groups = token.exec(text)?.groups;
    if (groups === undefined) return undefined;
    if (groups["word"] !== undefined) argv.push(unquote(groups["word"]));
    if (groups["operator"] === undefined) continue;
    if (argv.length === 0) return undefined;
    commands.push(argv);
    argv = [];
  }
  if (argv.length === 0) return undefined;
  return [...commands, argv];
}

function unquote(word: string): string {
  return word.replace(/'([^']*)'|"([^"]*)"/g, (_all, single?: string, double?: string) => single ?? double ?? "");
}

/** No option of these writes a file or starts a program. */
const PLAIN = new Set(
  "basename cat cd cmp cut dirname echo false grep head id ls nl pwd readlink realpath stat tail true uname wc which whoami".split(
    " ",
  ),
);

const GIT_READING = new Set(["status", "log", "show", "diff", "rev-parse", "ls-files"]);
const GIT_OPTION =
  /^(-\d+|-[npsz]|--(oneline|stat|short|porcelain|cached|staged|name-only|name-status|no-color|graph|all|show-toplevel|abbrev-ref|no-ext-diff|no-textconv)|--max-count=\d+)$/;

function isReadOnlyArgv(argv: readonly string[]): boolean {
  const [name, ...args] = argv;
  if (name === undefined || name.includes("=")) return false;
  if (PLAIN.has(name)) return true;
  switch (name) {
    case "find":
      return !args.some((arg) => /^-(exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf)$/.test(arg));
    case "rg":
      return !args.some((arg) => /^(--pre|--hostname-bin|--search-zip)(=|$)|^-[a-zA-Z]*z/.test(arg));
    case "sed":
      return (
        args[0] === "-n" && /^\d+(,\d+)?p$/.test(args[1] ?? "") && args.slice(2).every((arg) => !arg.startsWith("-"))
      );
    case "git":
      return (
        GIT_READING.has(args[0] ?? "") && args.slice(1).every((arg) => !arg.startsWith("-") || GIT_OPTION.test(arg))
      );
    default:
      return false;
  }
}
