/**
 * What the next turn of a thread runs with, when nobody has it in mind any more: the settings of its last turn, and what
 * was changed since. Changes are kept in the journal in the words that every door knows.
 */
import { lastTurnOf, readPlan, settingsOf } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { ApprovalPolicy, SandboxMode, type TurnSettings } from "@heddle/protocol";
import { CollaborationMode, modeOf } from "@heddle/dialects/chat";
import { z } from "zod";

type Changes = Readonly<Record<string, unknown>>;

export interface NextSettings {
  /** undefined: there has been no turn. */
  readonly settings: TurnSettings | undefined;
  /** Changed since the last turn. */
  readonly changes: Changes;
  /** Clients have brought tools along. */
  readonly hasClientTools: boolean;
}

export async function nextSettings(journal: Journal, threadId: string): Promise<NextSettings> {
  const past = await readPlan(journal, threadId);
  const turn = await lastTurnOf(journal, past);
  const settings = turn === undefined ? undefined : await settingsOf(journal, turn);
  let changes: Changes = {};
  let hasClientTools = false;
  const begins = past.parts.findIndex(({ stream }) => stream === turn?.threadId);
  for (const [index, { stream, upTo }] of past.parts.entries()) {
    const tools = await journal.marks.versions({ stream, kinds: ["thread.tools-declared"], upTo, newest: 1 });
    hasClientTools ||= tools.length > 0;
    if (index < begins) continue;
    const after = index === begins ? (turn?.admittedVersion ?? 0) : 0;
    for (const { body } of await journal.marks.events({ stream, kinds: ["thread.settings-changed"], after, upTo }))
      if (body.type === "thread.settings-changed") changes = { ...changes, ...body.changes };
  }
  return { settings: settings === undefined ? undefined : withChanges(settings, changes), changes, hasClientTools };
}

const Known = {
  model: z.string(),
  effort: z.string(),
  approval_policy: ApprovalPolicy,
  sandbox: SandboxMode,
  network_access: z.boolean(),
  writable_roots: z.array(z.string()),
  collaboration_mode: CollaborationMode,
} as const;

/** Words of another door that mean nothing here are passed over. */
export function withChanges(settings: TurnSettings, changes: Changes): TurnSettings {
  const wish = <K extends keyof typeof Known>(key: K): z.infer<(typeof Known)[K]> | undefined => {
    const parsed = Known[key].safeParse(changes[key]);
    return parsed.success ? (parsed.data as z.infer<(typeof Known)[K]>) : undefined;
  };
  const effort = wish("effort") ?? settings.effort;
  return {
    ...settings,
    model: wish("model") ?? settings.model,
    ...(effort === undefined ? {} : { effort }),
    approvalPolicy: wish("approval_policy") ?? settings.approvalPolicy,
    sandboxMode: wish("sandbox") ?? settings.sandboxMode,
    networkAccess: wish("network_access") ?? settings.networkAccess,
    writableRoots: wish("writable_roots") ?? settings.writableRoots,
    ...modeWished(wish("collaboration_mode")),
  };
}

function modeWished(wished: CollaborationMode | undefined): Pick<TurnSettings, "mode"> {
  if (wished === undefined) return {};
  return { mode: modeOf(wished) === "plan" ? "plan" : undefined };
}

/** The difference in the words of the journal. */
export function changesBetween(before: TurnSettings, after: TurnSettings): Changes {
  const words = (settings: TurnSettings): Readonly<Record<keyof typeof Known, unknown>> => ({
    model: settings.model,
    effort: settings.effort,
    approval_policy: settings.approvalPolicy,
    sandbox: settings.sandboxMode,
    network_access: settings.networkAccess,
    writable_roots: settings.writableRoots,
    collaboration_mode: { mode: settings.mode ?? "default" },
  });
  const old = new Map(Object.entries(words(before)));
  const isOther = ([key, value]: readonly [string, unknown]): boolean =>
    JSON.stringify(old.get(key)) !== JSON.stringify(value);
  return Object.fromEntries(Object.entries(words(after)).filter(isOther));
}
