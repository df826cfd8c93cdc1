/**
 * Judges the configuration of a repository that appeared inside a write root. Git runs programs named in dozens of
 * keys, with new ones every year; so only keys known to be harmless pass.
 */

const HARMLESS: readonly RegExp[] = [
  /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|abbrev|quotepath|untrackedcache|preloadindex|longpaths|protecthfs|protectntfs|compression|bigfilethreshold|sharedrepository|trustctime|checkstat|splitindex|commitgraph|multipackindex|sparsecheckout|sparsecheckoutcone)$/,
  /^user\.(name|email)$/,
  /^(author|committer)\.(name|email)$/,
  /^init\.defaultbranch$/,
  /^remote\..+\.(fetch|push|tagopt|prune|prunetags|mirror|skipdefaultupdate|skipfetchall|promisor|partialclonefilter)$/,
  /^branch\..+\.(remote|merge|rebase|pushremote|description)$/,
  /^branch\.(autosetupmerge|autosetuprebase|sort)$/,
  /^submodule\..+\.(active|branch|ignore|fetchrecursesubmodules)$/,
  /^submodule\.(active|recurse|propagatebranches)$/,
  /^(pull|push|fetch|merge|rebase|color|advice|gc|pack|index|status|log|tag|stash|column|feature|maintenance|rerere)\.[a-z]+$/,
  /^color\.(branch|diff|status|grep|interactive|decorate|remote)\.[a-z]+$/,
  /^diff\.(renames|renamelimit|algorithm|context|interhunkcontext|mnemonicprefix|noprefix|colormoved)$/,
  /^commit\.(cleanup|verbose|status|gpgsign)$/,
  /^extensions\.(objectformat|refstorage|partialclone|compatobjectformat|noop|worktreeconfig|relativeworktrees)$/,
  /^lfs\.repositoryformatversion$/,
];

/** Keys of the groups above that name a program after all. */
const HARMFUL = new Set([
  "merge.tool",
  "merge.guitool",
  "pull.twohead",
  "log.mailmap",
  "column.ui.command",
  "gc.recentobjectshook",
]);

const MAX_CONFIG_BYTES = 64 * 1024;

interface Entry {
  readonly key: string;
  readonly value: string;
}

export interface JudgedConfig {
  /** The first harmful key, or a text that could not be parsed. */
  readonly harmful?: string;
  /** The work tree it names: harmless only where that points back. */
  readonly worktree?: string;
}

export function judgeConfig(text: string): JudgedConfig {
  if (text.length > MAX_CONFIG_BYTES) return { harmful: "(too long)" };
  let worktree: string | undefined;
  for (const entry of entriesOf(text)) {
    if ("unclear" in entry) return { harmful: entry.unclear };
    const { key, value } = entry;
    const isWorktree = key === "core.worktree" && worktree === undefined && /^[^"\\#;]+$/.test(value);
    if (isWorktree) worktree = value;
    else if (!isHarmless(key, value)) return { harmful: key };
  }
  return worktree === undefined ? {} : { worktree };
}

/** Programs, hook folders and further configurations that a configuration makes git read or run, as written. */
export function namedByConfig(text: string): readonly { readonly key: string; readonly path: string }[] {
  const named: { key: string; path: string }[] = [];
  for (const entry of entriesOf(text)) {
    if ("unclear" in entry || entry.key === "core.worktree" || isHarmless(entry.key, entry.value)) continue;
    const bare = entry.value.replaceAll(/^!?\s*|"/g, "");
    const isWhole = /^(?:core\.hookspath|include(?:if\..+)?\.path)$/.test(entry.key);
    const path = isWhole ? bare : /^\S+/.exec(bare)?.[0];
    if (path !== undefined && path !== "") named.push({ key: entry.key, path });
  }
  return named;
}

function* entriesOf(text: string): Generator<Entry | { readonly unclear: string }> {
  if (text.includes("\0")) return yield { unclear: "(not text)" };
  let section = "";
  for (const rawLine of text.replaceAll("\r\n", "\n").split("\n")) {
    const line = rawLine.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    if (line.startsWith("[")) {
      const header = /^\[([A-Za-z0-9.-]+)(?: "((?:[^"\\\n]|\\.)*)")?\]\s*(?:[#;].*)?$/.exec(line);
      if (header === null) yield { unclear: line.slice(0, 80) };
      const [, name = "", sub] = header ?? [];
      section = sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub}`;
      continue;
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(line);
    // A continued value could hide a key from this parser.
    if (entry === null || line.endsWith("\\")) yield { unclear: line.slice(0, 80) };
    else yield { key: `${section}.${(entry[1] ?? "").toLowerCase()}`, value: entry[2] ?? "" };
  }
}

function isHarmless(key: string, value: string): boolean {
  if (/^(?:remote|submodule)\..+\.(?:url|pushurl)$/.test(key)) return isPlainAddress(value);
  if (HARMFUL.has(key)) return false;
  return HARMLESS.some((pattern) => pattern.test(key));
}

/** `name::address` starts the program git-remote-name, and a leading dash would be an option. */
function isPlainAddress(value: string): boolean {
  const bare = value.replaceAll('"', "");
  return !/^[A-Za-z0-9+.-]*::/.test(bare) && !bare.startsWith("-");
}
