/** What the arguments of `heddle exec` ask for: a new thread, an old one, a fork of one, or a review; and where the prompt is. */
import type { ReviewTarget } from "@heddle/agent/review";
import { foreignOption, usage, type ParsedArgs } from "../args.ts";
import { EXEC_OPTIONS, EXEC_SUBCOMMANDS, type ExecSubcommand } from "../commands/exec-options.ts";

export type ThreadChoice =
  | { readonly kind: "new" }
  | { readonly kind: "resume"; readonly selector: string }
  | { readonly kind: "resumeLast"; readonly isEverywhere: boolean }
  | { readonly kind: "fork"; readonly selector: string };

export interface ExecRequest {
  readonly thread: ThreadChoice;
  readonly review: ReviewTarget | undefined;
  /** What stands in the place of the prompt; empty: it is on standard input, or there is none to be read. */
  readonly promptArgs: readonly string[];
  /** A fork or a review can do without a prompt. */
  readonly needsPrompt: boolean;
}

export function parseRequest(args: ParsedArgs): ExecRequest {
  const [first, ...rest] = args.positionals;
  const isWord = args.positionalsBeforeDashes > 0;
  const subcommand = isWord ? EXEC_SUBCOMMANDS.find((name) => name === first) : undefined;
  refuseForeignOptions(args, subcommand);
  switch (subcommand) {
    case "resume":
      return resume(args, rest);
    case "fork":
      return fork(rest);
    case "review":
      return review(args, rest);
    case undefined:
      return { thread: { kind: "new" }, review: undefined, promptArgs: args.positionals, needsPrompt: true };
  }
}

/** More arguments than one prompt, and a `-` after it for what is piped in. */
export function hasSecondPrompt(args: ParsedArgs): boolean {
  const isWord = args.positionalsBeforeDashes > 0;
  const subcommand = isWord ? EXEC_SUBCOMMANDS.find((name) => name === args.positionals[0]) : undefined;
  const before = subcommand === undefined ? 0 : subcommand === "review" || args.has("last") ? 1 : 2;
  return isSecondPrompt(args.positionals.slice(before));
}

export function isSecondPrompt([, second, ...more]: readonly string[]): boolean {
  return more.length > 0 || (second !== undefined && second !== "-");
}

function refuseForeignOptions(args: ParsedArgs, subcommand: ExecSubcommand | undefined): void {
  const foreign = foreignOption(EXEC_OPTIONS, args, subcommand);
  if (foreign === undefined) return;
  const { name, owners } = foreign;
  throw usage(`--${name} belongs to ${owners.join(" and ")}: heddle exec ${owners[0] ?? ""} --${name}`);
}

function resume(args: ParsedArgs, rest: readonly string[]): ExecRequest {
  const common = { review: undefined, needsPrompt: true };
  if (args.has("last")) {
    const thread: ThreadChoice = { kind: "resumeLast", isEverywhere: args.has("all") };
    return { ...common, thread, promptArgs: rest };
  }
  const [selector, ...promptArgs] = rest;
  if (selector === undefined || selector === "-") {
    throw usage("name the thread to resume: heddle exec resume ID, or heddle exec resume --last");
  }
  return { ...common, thread: { kind: "resume", selector }, promptArgs };
}

function fork([selector, ...promptArgs]: readonly string[]): ExecRequest {
  if (selector === undefined || selector === "-") {
    throw usage("name the thread to fork: heddle exec fork ID; heddle threads list shows them");
  }
  const needsPrompt = promptArgs.length > 0;
  return { thread: { kind: "fork", selector }, review: undefined, promptArgs, needsPrompt };
}

function review(args: ParsedArgs, promptArgs: readonly string[]): ExecRequest {
  const base = args.value("base");
  const commit = args.value("commit");
  const title = args.value("title");
  const targets: readonly ReviewTarget[] = [
    ...(args.has("uncommitted") ? [{ kind: "uncommitted" } as const] : []),
    ...(base === undefined ? [] : [{ kind: "base", branch: base } as const]),
    ...(commit === undefined ? [] : [{ kind: "commit", commit, title } as const]),
  ];
  const [target, ...more] = targets;
  if (more.length > 0) throw usage("review one thing: --uncommitted, --base BRANCH or --commit SHA");
  if (title !== undefined && commit === undefined) throw usage("--title names a commit; give --commit SHA with it");
  if (target === undefined && promptArgs.length === 0) {
    throw usage(`say what to review: --uncommitted, --base BRANCH, --commit SHA, or your own instructions`);
  }
  const needsPrompt = promptArgs.length > 0;
  return { thread: { kind: "new" }, review: target ?? { kind: "custom" }, promptArgs, needsPrompt };
}

export function notesFor(args: ParsedArgs, warnings: readonly string[]): readonly string[] {
  return [...warnings, ...(args.has("cyber-access-program") ? ["--cyber-access-program has no effect"] : [])];
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
