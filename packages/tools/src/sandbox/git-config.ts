/**
 * Judges the configuration of a repository that appeared inside a write root. Git runs programs that a configuration
 * names, in dozens of keys and new ones every year; so only keys known to be harmless pass.
 */

const HARMLESS: readonly RegExp[] = [
  /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|abbrev|quotepath|untrackedcache|preloadindex|longpaths|protecthfs|protectntfs|compression|bigfilethreshold|sharedrepository|trustctime|checkstat|splitindex|commitgraph|multipackindex)$/,
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
  /^extensions\.(objectformat|refstorage|partialclone|compatobjectformat|noop)$/,
  /^lfs\.repositoryformatversion$/,
];

/** Keys of the harmless groups above that name a program after all. */
const HARMFUL = new Set([
  "merge.tool",
  "merge.guitool",
  "pull.twohead",
  "log.mailmap",
  "column.ui.command",
  "gc.recentobjectshook",
]);

const MAX_CONFIG_BYTES = 64 * 1024;

/** The first key that may do harm, or undefined. What cannot be understood is harmful. */
export function harmfulConfigKey(text: string): string | undefined {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) return "(too long)";
  if (text.includes("\0")) return "(not text)";
  let section = "";
  for (const rawLine of text.replaceAll("\r\n", "\n").split("\n")) {
    const line = rawLine.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    if (line.startsWith("[")) {
      const header = /^\[([A-Za-z0-9.-]+)(?: "((?:[^"\\\n]|\\.)*)")?\]\s*(?:[#;].*)?$/.exec(line);
      if (header === null) return line.slice(0, 80);
      section =
        header[2] === undefined ? (header[1] ?? "").toLowerCase() : `${(header[1] ?? "").toLowerCase()}.${header[2]}`;
      continue;
    }
    const entry = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(line);
    // A value that goes on in the next line could hide a key from this reader.
    if (entry === null || line.endsWith("\\")) return line.slice(0, 80);
    const key = `${section}.${(entry[1] ?? "").toLowerCase()}`;
    if (!isHarmless(key, entry[2] ?? "")) return key;
  }
  return undefined;
}

function isHarmless(key: string, value: string): boolean {
  if (/^(?:remote|submodule)\..+\.(?:url|pushurl)$/.test(key)) return isPlainAddress(value);
  if (HARMFUL.has(key)) return false;
  return HARMLESS.some((pattern) => pattern.test(key));
}

/** `name::address` starts the program git-remote-name, and a leading dash would be taken for an option. */
function isPlainAddress(value: string): boolean {
  const bare = value.replaceAll('"', "");
  return !/^[A-Za-z0-9+.-]*::/.test(bare) && !bare.startsWith("-");
}
