/**
 * Recognises a shell command that is nothing but `apply_patch` with its patch, as models type it: a heredoc or one
 * quoted argument, optionally after `cd dir &&`. Anything else is an ordinary command.
 */
export interface TypedPatch {
  readonly patch: string;
  /** Folder of a leading `cd`. */
  readonly workdir?: string;
}

const NAMES = "(?:apply_patch|applypatch)";
const CD = String.raw`(?:cd\s+(?:"(?<dq>[^"$\x60\\\n]+)"|'(?<sq>[^'\n]+)'|(?<bare>[\w./@+=-]+))\s*&&\s*)?`;
const HEREDOC = new RegExp(
  String.raw`^\s*${CD}${NAMES}\s+<<-?\s*(?<quote>['"]?)(?<tag>\w+)\k<quote>[ \t]*\n(?<body>[\s\S]*?)\n\k<tag>\s*$`,
);
const QUOTED = new RegExp(String.raw`^\s*${CD}${NAMES}\s+'(?<body>\*\*\* Begin Patch\n[^']*)'\s*$`);

export function typedPatch(command: string): TypedPatch | undefined {
  // The patterns walk the text once, but only commands that can match pay for it.
  if (!/\bapply_?patch\b/.test(command.slice(0, 1024))) return undefined;
  const groups = (HEREDOC.exec(command) ?? QUOTED.exec(command))?.groups;
  const patch = groups?.["body"];
  if (groups === undefined || patch === undefined) return undefined;
  const workdir = groups["dq"] ?? groups["sq"] ?? groups["bare"];
  return workdir === undefined ? { patch } : { patch, workdir };
}
