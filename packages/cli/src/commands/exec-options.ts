/**
 * The options of `heddle exec`: names and meanings of `codex exec` where it has them. Options that mean nothing here are
 * understood all the same, so that no caller has to change; the run says so once where that could surprise.
 */
import { statSync } from "node:fs";
import type { OptionSpec } from "../args.ts";
import { BATCH_OPTIONS } from "../batch/flags.ts";

export const EXEC_SUBCOMMANDS = ["resume", "fork", "review"] as const;
export type ExecSubcommand = (typeof EXEC_SUBCOMMANDS)[number];

/** Of the words after `-i FILE`, those that name images; the first other word is the prompt. */
function isImageWord(word: string): boolean {
  return /\.(png|jpe?g|gif|webp)$/i.test(word) || statSync(word, { throwIfNoEntry: false })?.isFile() === true;
}

/** Of every command that reads the configuration. */
export const CONFIG_OPTIONS: readonly OptionSpec[] = [
  {
    name: "config",
    short: "c",
    value: "KEY=VALUE",
    isMultiple: true,
    help: "Override a key of config.toml; VALUE is TOML, or text",
  },
  { name: "profile", short: "p", value: "NAME", help: "Use [profiles.NAME] of config.toml" },
  { name: "ignore-user-config", help: "Read no config.toml" },
  { name: "strict-config", help: "Refuse unknown keys in Codex's config.toml too" },
];

const CHOOSING: readonly OptionSpec[] = [
  { name: "runner", value: "NAME", help: "What carries out the turn: embedded, codex, claude, … (heddle runners)" },
  { name: "model", short: "m", value: "MODEL", help: "Model to ask" },
  ...CONFIG_OPTIONS,
  { name: "oss", help: "Ask a model on this machine" },
  {
    name: "local-provider",
    value: "NAME",
    choices: ["ollama", "lmstudio"],
    help: "With --oss: the program that serves it",
  },
];

const WORKING: readonly OptionSpec[] = [
  {
    name: "sandbox",
    short: "s",
    value: "MODE",
    choices: ["read-only", "workspace-write", "danger-full-access"],
    help: "What commands may do",
  },
  { name: "envelope", value: "NAME", help: "What the agent may do: explore, edit, test, … (heddle envelopes)" },
  {
    name: "agent-name",
    value: "NAME",
    help: "The name by which heddle tell, heddle ask and other agents reach its agent",
  },
  { name: "ceiling", value: "NAME", help: "The widest envelope that the thread may ever have" },
  {
    name: "cd",
    short: "C",
    value: "DIR",
    completes: "folder",
    help: "Folder to work in; a resumed thread continues there",
  },
  {
    name: "add-dir",
    value: "DIR",
    isMultiple: true,
    completes: "folder",
    help: "Another folder that may be written",
  },
  {
    name: "network-host",
    value: "HOST",
    isMultiple: true,
    help: "A host that commands may reach: name, *.name or address, with :port unless 80 or 443",
  },
  {
    name: "image",
    short: "i",
    value: "FILE",
    isMultiple: true,
    takesMore: isImageWord,
    completes: "file",
    help: "Attach images; several with commas or one after another",
  },
  { name: "skip-git-repo-check", help: "Work in a folder outside any git repository" },
  { name: "ephemeral", help: "Delete the thread when the run is over" },
  { name: "timeout", value: "SECONDS", help: "Stop the turn after this long (exit code 124)" },
  { name: "script", value: "FILE", completes: "file", help: "Run a script (JSON) instead of a model" },
  { name: "full-auto", help: "Same as -s workspace-write" },
  {
    name: "dangerously-bypass-approvals-and-sandbox",
    aliases: ["yolo"],
    help: "No sandbox at all: same as -s danger-full-access",
  },
];

const PRINTING: readonly OptionSpec[] = [
  { name: "json", aliases: ["experimental-json"], help: "Print events as JSON lines on stdout" },
  { name: "deltas", help: "With --json: text and output as they come, as item.updated" },
  {
    name: "output-last-message",
    short: "o",
    value: "FILE",
    completes: "file",
    help: "Write the final message to FILE",
  },
  { name: "output-schema", value: "FILE", completes: "file", help: "JSON Schema that the final message must match" },
  { name: "color", value: "WHEN", choices: ["always", "never", "auto"], help: "Colour on stderr" },
  { name: "codex-exit-codes", help: "Exit with 1 for every failure except bad usage, as codex exec does" },
];

const OF_SUBCOMMANDS: readonly OptionSpec[] = [
  { name: "last", of: "resume", help: "The thread last used in this folder" },
  { name: "all", of: "resume", help: "With --last: of every folder; it continues in this one" },
  { name: "uncommitted", of: "review", help: "Staged, unstaged and untracked changes" },
  { name: "base", of: "review", value: "BRANCH", help: "Changes since the branch point" },
  { name: "commit", of: "review", value: "SHA", help: "The changes of one commit" },
  { name: "title", of: "review", value: "TITLE", help: "What to call that commit" },
];

/** Callers of Codex send these; what they ask for exists here always, or not at all. */
const UNDERSTOOD: readonly OptionSpec[] = [
  {
    name: "ask-for-approval",
    short: "a",
    value: "WHEN",
    choices: ["never", "on-request", "on-failure", "untrusted"],
    isForCodex: true,
    help: "No approval is possible here",
  },
  { name: "approve-for-me", isForCodex: true, help: "Same as -s workspace-write" },
  { name: "version", short: "V", isForCodex: true, help: "Print the version, and run nothing" },
  { name: "search", help: "Let the model search the web, where its provider can and the sandbox has the network" },
  { name: "enable", value: "FEATURE", isMultiple: true, isForCodex: true, help: "A feature of Codex" },
  { name: "disable", value: "FEATURE", isMultiple: true, isForCodex: true, help: "A feature of Codex" },
  { name: "dangerously-bypass-hook-trust", isForCodex: true, help: "Run hooks that have not been trusted yet" },
  { name: "worktree", isForCodex: true, help: "Work in a new git worktree" },
  { name: "thread-source", value: "SOURCE", isForCodex: true, help: "What made the thread" },
  {
    name: "cyber-access-program",
    value: "PROGRAM",
    isForCodex: true,
    help: "A program of OpenAI",
  },
  { name: "ignore-rules", isForCodex: true, help: "There are no rule files" },
];

export const EXEC_OPTIONS: readonly OptionSpec[] = [
  ...CHOOSING,
  ...WORKING,
  ...PRINTING,
  ...BATCH_OPTIONS,
  ...OF_SUBCOMMANDS,
  ...UNDERSTOOD,
];

export const EXEC_EXAMPLES: readonly string[] = [
  `heddle exec "what does this project do?"`,
  `heddle exec -s workspace-write "fix the failing test"`,
  `git diff | heddle exec "review this change"`,
  `heddle exec --json --timeout 600 -o answer.txt "list the public functions" > events.jsonl`,
  `heddle exec --result-json result.json --max-turns 40 --timeout 1800 --retry 2 --prompt-file task.md`,
  `heddle exec resume --last "now the other one"`,
  `heddle exec review --base main`,
  `heddle exec --oss -m qwen3 "explain main.ts"`,
];
