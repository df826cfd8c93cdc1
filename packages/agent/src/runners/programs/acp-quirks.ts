/**
 * Where agents differ that all speak ACP: what each was seen to do, by the name and versions it gives. An agent that is not
 * listed is taken at the word of the protocol, and its ends are `likely` at best.
 */

export interface AcpQuirks {
  /**
   * What `usage` of an answer counts. `session`: everything since it was opened; `lastCall` is less than the turn used, and
   * `none` is not told. `calls`: it is told with the messages, of each call of the model.
   */
  readonly usage: "turn" | "session" | "lastCall" | "calls" | "none";
  /** The mode in which it asks; set after every opening, because some begin in one that judges for itself. */
  readonly askMode?: string;
  /**
   * In place of it in Heddle's sandbox, in which its own sandbox cannot be made. Such an agent asks when its sandbox refuses,
   * and never before every act.
   */
  readonly heldMode?: string;
  /** An agent of its own configuration may allow itself what it is told to ask about, so nothing may depend on its asking. */
  readonly mayNotAsk?: true;
  /** In the output of a command: its exit code. After a success there is none. */
  readonly exitText?: RegExp;
  /** The output of a command that was stopped, and that it calls completed. */
  readonly cancelText?: RegExp;
  /** It loads nothing: it empties the record of the session first. */
  readonly forgets?: true;
  /** A whole piece of a message, which is no word of its model: an error, with which its turn has failed if nothing follows. */
  readonly errorText?: RegExp;
  /** The same of what it says to people. */
  readonly noticeText?: RegExp;
  /** The same of what an item says already. */
  readonly echoText?: RegExp;
  /** In `_meta` of news about its session: its thread has failed. */
  readonly hasThreadStatus?: boolean;
}

interface QuirkRow {
  /** Of `agentInfo`, in lower case. */
  readonly name: RegExp;
  /** Of the major version it was seen in. */
  readonly major: readonly number[];
  readonly quirks: AcpQuirks;
}

const PLAIN: AcpQuirks = { usage: "none" };

const ROWS: readonly QuirkRow[] = [
  {
    name: /^opencode$/,
    major: [1],
    quirks: { usage: "lastCall", mayNotAsk: true, cancelText: /<shell_metadata>\nUser aborted the command/ },
  },
  // Of a command it tells neither the exit code nor, unless its own settings say so, the output.
  {
    name: /^gemini-cli$/,
    major: [0],
    quirks: { usage: "turn", askMode: "default", cancelText: /^Command cancelled by user\./, forgets: true },
  },
  {
    name: /copilot/,
    major: [0, 1],
    quirks: {
      usage: "session",
      errorText: /^Error: (?:\d{3}\b|Authentication failed|Failed to get response)/,
      // The file that it has just written.
      echoText: /^Info: \/[^\n]*$/,
      noticeText:
        /^(?:Info: (?:Request failed|Response was interrupted|Operation cancelled)|Warning: \d+ tool call\(s\))/,
      exitText: /<shellId: \d+ completed with exit code (\d+)>\s*$/,
    },
  },
  { name: /claude/, major: [0], quirks: { usage: "turn", askMode: "default", exitText: /^Exit code (\d+)(?:\n|$)/ } },
  {
    name: /codex-acp$/,
    major: [2],
    quirks: { usage: "turn", askMode: "workspace-write", heldMode: "agent-full-access", hasThreadStatus: true },
  },
  { name: /qwen/, major: [0], quirks: { usage: "calls", askMode: "default" } },
];

export function quirksOf(
  agent: { readonly name: string; readonly version?: string | undefined } | undefined,
): AcpQuirks {
  if (agent === undefined) return PLAIN;
  const major = Number(/^\d+/.exec(agent.version ?? "")?.[0] ?? Number.NaN);
  const name = agent.name.toLowerCase();
  return ROWS.find((row) => row.name.test(name) && row.major.includes(major))?.quirks ?? PLAIN;
}
