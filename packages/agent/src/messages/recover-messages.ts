/** What a crash left between two threads, when a Heddle opens: sent and not delivered, asked and never ended. */
import type { Journal, MessageRow } from "@heddle/journal";
import { isHeddleError } from "@heddle/protocol";
import { eventAt } from "../threads/history.ts";
import { settleByEnd } from "./by-end.ts";
import { NO_MESSAGE_RULES, type MessageRules } from "./rules.ts";
import { deliver, isSent } from "./send.ts";
import { expire } from "./settle.ts";

const MAX_RECOVERED = 1_000;

export async function recoverMessages(journal: Journal, rules: MessageRules = NO_MESSAGE_RULES): Promise<void> {
  for (const row of await journal.messages.loose({ limit: MAX_RECOVERED })) {
    if (row.receivedVersion === undefined) await redeliver(journal, row, rules);
    else if ((await expire(journal, row)) === undefined && row.givenTurn !== undefined)
      await settleByEnd(journal, row.givenTurn);
  }
}

/** Where its sender's process lives, both deliver the same message, and the journal stores it once. */
async function redeliver(journal: Journal, { from, sentVersion }: MessageRow, rules: MessageRules): Promise<void> {
  const event = from === undefined || sentVersion === undefined ? undefined : await eventAt(journal, from, sentVersion);
  if (event === undefined || !isSent(event)) return;
  try {
    await deliver(journal, event, rules);
  } catch (error) {
    // A refusal is on record with its sender; what the store cannot take now is tried again by the next that opens.
    if (!isHeddleError(error)) throw error;
  }
}
