/** What a Heddle begins with: what a crash left open is closed, and of the rest only that is loaded which it may need. */
import { openJournal, type Journal } from "@heddle/journal";
import type { createParkedTurns } from "./approvals/carry-on.ts";
import type { createChildThreads } from "./children/child-threads.ts";
import type { HeddleOptions } from "./heddle.ts";
import type { createMessages } from "./messages/port.ts";
import { keysInUse } from "./keys-in-use.ts";
import type { Member } from "./recovery/membership.ts";
import { recoverOnOpen } from "./recovery/recover-on-open.ts";
import type { Recovered } from "./recovery/recover.ts";
import type { Background } from "./side-requests/background.ts";
import type { OpenHooks } from "./turns/policy.ts";

export interface Begun {
  /** What a member appends carries its lease. */
  readonly journal: Journal;
  readonly member: Member | undefined;
  readonly recovered: Recovered;
  readonly openHooks: OpenHooks | undefined;
  readonly openParked: typeof createParkedTurns | undefined;
  readonly openChildren: typeof createChildThreads | undefined;
  readonly openMessages: typeof createMessages | undefined;
  readonly background: Background | undefined;
}

export function openStore(options: HeddleOptions): Promise<Journal> {
  const { home, store, redactor, leaseMs, tickets } = options;
  return openJournal({ home, store, redactor, leaseMs, tickets, secrets: keysInUse(options) });
}

export async function begin(options: HeddleOptions, journal: Journal): Promise<Begun> {
  const { home, hooks = [], isUnattended, childThreads, messages } = options;
  const recovered = await recoverOnOpen(journal, home);
  if (journal.isWritable && (await journal.messages.loose({ limit: 1 })).length > 0)
    await (await import("./messages/recover-messages.ts")).recoverMessages(journal, messages);
  const joined =
    options.member && (await (await import("./recovery/membership.ts")).joinStore(journal, options.member));
  return {
    journal: joined?.journal ?? journal,
    member: joined?.member,
    recovered,
    openHooks: hooks.length === 0 ? undefined : (await import("./hooks/hooks.ts")).checkedHooks(hooks),
    openParked: isUnattended ? undefined : (await import("./approvals/carry-on.ts")).createParkedTurns,
    openChildren: childThreads && (await import("./children/child-threads.ts")).createChildThreads,
    openMessages: messages?.hasTools === true ? (await import("./messages/port.ts")).createMessages : undefined,
    background:
      isUnattended && options.background === undefined
        ? undefined
        : await (await import("./side-requests/open-beside.ts")).openBeside(options, journal),
  };
}
