/**
 * What one case is: invocations of `exec` in a fresh home and workspace, and the model that answers them. A case is data,
 * the same for every program. Words in braces stand for what only a run knows: {root}, {ws}, {home} (CODEX_HOME), {url}
 * (the model server), {dead} (an address where nobody listens), {thread} (the thread the first invocation started) and, in a
 * script, "{session}" (the number of the command that the model was told is still running).
 */
import type { Fault, ModelServerOptions } from "@heddle/models/testing";
import type { Aspect } from "./compare.ts";

export type Step = NonNullable<ModelServerOptions["script"]>[number];

export interface Invocation {
  /** Everything after the program's name. */
  readonly args: readonly string[];
  /** Absent: no input at all. `isOpen`: a pipe that nobody writes to and nobody closes. */
  readonly stdin?: string | { readonly bytes: readonly number[] } | { readonly isOpen: true };
  /** A line of a shell in which the program with its arguments is `"$@"`, for ways to leave standard input; not with `stdin`. */
  readonly wrapper?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The folder it is started in; absent: the workspace. */
  readonly cwd?: string;
  /** The reader of stdout leaves after the first line. */
  readonly isReaderGone?: boolean;
  /** A signal for the program once stdout holds this text. */
  readonly signal?: { readonly name: "SIGINT" | "SIGTERM"; readonly after: string };
}

export interface ExecCase {
  readonly id: string;
  readonly about: string;
  readonly runs: readonly Invocation[];
  /** CODEX_HOME/config.toml; absent: the mock provider with one retry of each kind. */
  readonly config?: string;
  readonly script?: readonly Step[];
  /** The fault of the nth request; a single one strikes every request. */
  readonly faults?: Fault | readonly (Fault | undefined)[];
  /** Files under the root, by path, before the first invocation. */
  readonly files?: Readonly<Record<string, string>>;
  /** Shell commands in the workspace before the first invocation. */
  readonly setUp?: string;
  /** The workspace is no git repository. */
  readonly isOutsideGit?: boolean;
  /** Words whose place in what the model is sent first is compared. */
  readonly marks?: readonly string[];
  /** Files under the root whose content afterwards is compared. */
  readonly looksAt?: readonly string[];
  /** Codex itself shows the items of this case in any order. */
  readonly isUnordered?: boolean;
  /** Codex shows an item of this case or not, by chance; which events there are is not compared. */
  readonly isUnsteady?: boolean;
  /** In what Codex differs from run to run, by a race of its own: Heddle is held to its listed part there, Codex to nothing. */
  readonly raced?: readonly Aspect[];
  /** How long one invocation may take before it is ended from outside. */
  readonly deadlineMs?: number;
}

/** What the key of the mock provider is called, and the provider itself, as every case has it unless it says otherwise. */
export const KEY_NAME = "MOCK_KEY";
export const MOCK_PROVIDER = `[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "${KEY_NAME}"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`;
export const MOCK_CONFIG = configured("");

/** The same with more keys. */
export function configured(keys: string): string {
  return `model = "gpt-5.5"\nmodel_provider = "mock"\n${keys === "" ? "" : `${keys}\n`}${MOCK_PROVIDER}`;
}

/** `exec --json` with more, then the prompt. */
export function json(...more: readonly string[]): Invocation {
  return { args: ["exec", "--json", ...more, "do it"] };
}

export function human(...more: readonly string[]): Invocation {
  return { args: ["exec", ...more, "do it"] };
}

/** A step that runs one shell command, without the start files of a login shell. */
export function command(cmd: string, more: Readonly<Record<string, unknown>> = {}): Step {
  return { calls: [{ tool: "exec_command", args: { cmd, login: false, ...more } }] };
}

export function patch(...lines: readonly string[]): Step {
  return {
    calls: [{ tool: "apply_patch", args: ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n") }],
  };
}

export function say(text: string): Step {
  return { text };
}
