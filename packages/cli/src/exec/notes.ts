/** What a caller asked for and does not get, said once on stderr: understood, and of no effect here. */
import { usage, type ParsedArgs } from "../args.ts";

export function notesFor(args: ParsedArgs, warnings: readonly string[]): readonly string[] {
  const features = [...new Set([...args.values("enable"), ...args.values("disable")])];
  return [
    ...(features.length === 0 ? [] : [`unknown features, without effect here: ${features.join(", ")}`]),
    ...warnings,
    ...(args.has("search") ? ["--search has no effect: there is no web search"] : []),
    ...(args.has("cyber-access-program") ? ["--cyber-access-program has no effect"] : []),
  ];
}

/** What cannot be passed over, because the work would happen somewhere else than the caller thinks. */
export function refuseUnsupported(args: ParsedArgs): void {
  if (args.has("worktree")) {
    throw usage(
      "--worktree is not supported, because nothing would clear such folders away; " +
        "make one and work in it: git worktree add --detach ../copy && heddle exec -C ../copy",
    );
  }
}
