/** The options of `heddle exec`: names and meanings of `codex exec` where it has them. */
import type { OptionSpec } from "../args.ts";

export const EXEC_OPTIONS: readonly OptionSpec[] = [
  { name: "model", short: "m", value: "MODEL", help: "Model to ask" },
  {
    name: "config",
    short: "c",
    value: "KEY=VALUE",
    isMultiple: true,
    help: "Override a key of config.toml; VALUE is TOML",
  },
  { name: "profile", short: "p", value: "NAME", help: "Use [profiles.NAME] of config.toml" },
  {
    name: "sandbox",
    short: "s",
    value: "MODE",
    choices: ["read-only", "workspace-write", "danger-full-access"],
    help: "What commands may do",
  },
  { name: "cd", short: "C", value: "DIR", help: "Folder to work in" },
  { name: "add-dir", value: "DIR", isMultiple: true, help: "Another folder that may be written" },
  { name: "image", short: "i", value: "FILE", isMultiple: true, help: "Attach an image" },
  { name: "json", aliases: ["experimental-json"], help: "Print events as JSON lines on stdout" },
  { name: "output-last-message", short: "o", value: "FILE", help: "Write the final message to FILE" },
  { name: "output-schema", value: "FILE", help: "JSON Schema the final message must have" },
  { name: "skip-git-repo-check", help: "Work in a folder outside any git repository" },
  { name: "timeout", value: "SECONDS", help: "Stop the turn after so long (exit code 124)" },
  { name: "script", value: "FILE", help: "Play a script (JSON) instead of asking a model" },
  { name: "color", value: "WHEN", choices: ["always", "never", "auto"], help: "Colour on stderr" },
  { name: "full-auto", help: "Same as -s workspace-write" },
  {
    name: "dangerously-bypass-approvals-and-sandbox",
    aliases: ["yolo"],
    help: "No sandbox at all: same as -s danger-full-access",
  },
];

export const EXEC_EXAMPLES: readonly string[] = [
  `heddle exec "what does this project do?"`,
  `heddle exec -s workspace-write "fix the failing test"`,
  `git diff | heddle exec "review this change" -`,
  `heddle exec --json --timeout 600 -o answer.txt "list the public functions" > events.jsonl`,
  `heddle exec -c model_provider=ollama -m qwen3 "explain main.ts"`,
];
