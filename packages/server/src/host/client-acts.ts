/** Acts of clients outside any turn, on record: the intent before, what came of it after, both without secrets and short. */
import { randomUUID } from "node:crypto";
import { toHeddleError, type ClientAct, type EventOf } from "@heddle/protocol";
import { fitText } from "@heddle/tools";
import type { Call } from "../rpc/call.ts";
import type { By } from "@heddle/protocol";
import type { Heddle } from "@heddle/agent";

/** The stream of what clients do outside threads. Only the owner sees it: it is in no stream of events. */
export const HOST_STREAM = "host";

const MAX_OUTPUT_BYTES = 4 * 1024;
const MAX_ARGUMENTS_BYTES = 16 * 1024;
const MAX_WORD_BYTES = 4 * 1024;
const MAX_WORDS = 100;

type Settled = Pick<EventOf<"client.settled">, "outcome" | "exitCode" | "output">;

export interface BegunAct {
  settled(end: Settled): Promise<void>;
  failed(error: unknown): Promise<void>;
}

interface NewAct {
  /** Absent: it is of no thread. */
  readonly threadId?: string;
  readonly act: ClientAct;
}

export function beginAct({ server, connection }: Call, act: NewAct): Promise<BegunAct> {
  return recordAct({ heddle: server.heddle, by: connection.by, client: connection.client?.name ?? "" }, act);
}

interface ActOf extends By {
  readonly heddle: Pick<Heddle, "journal">;
  readonly client: string;
}

/** Resolves when the intent is durable; what cannot be recorded is not to be done. */
export async function recordAct({ heddle, by, client }: ActOf, { threadId, act }: NewAct): Promise<BegunAct> {
  const actId = `act_${randomUUID()}`;
  const append = async (event: EventOf<"client.intended"> | EventOf<"client.settled">): Promise<void> => {
    await heddle.journal.append({ stream: threadId ?? HOST_STREAM, author: by, events: [event] });
  };
  await append({ type: "client.intended", v: 1, actId, client, act: bounded(act) });
  const startedAt = performance.now();
  const end = (settled: Settled & Pick<EventOf<"client.settled">, "failure">): Promise<void> =>
    append({ type: "client.settled", v: 1, actId, durationMs: Math.round(performance.now() - startedAt), ...settled });
  return {
    settled: ({ output, ...settled }) =>
      end({ ...settled, ...(output === undefined ? {} : { output: fitText(output, MAX_OUTPUT_BYTES) }) }),
    failed(error) {
      const { code, message } = toHeddleError(error);
      return end({ outcome: "failed", failure: { code, message: fitText(message, MAX_OUTPUT_BYTES) } });
    },
  };
}

function bounded(act: ClientAct): ClientAct {
  if (act.kind === "mcpTool") return { ...act, arguments: fitText(act.arguments, MAX_ARGUMENTS_BYTES) };
  if (act.kind === "endProcess") return { ...act, command: fitText(act.command, MAX_WORD_BYTES) };
  if (act.kind === "input") {
    const text = fitText(act.text, MAX_ARGUMENTS_BYTES);
    return { ...act, command: fitText(act.command, MAX_WORD_BYTES), text };
  }
  const argv = act.argv.slice(0, MAX_WORDS).map((word) => fitText(word, MAX_WORD_BYTES));
  const more = act.argv.length - argv.length;
  return {
    ...act,
    argv: more > 0 ? [...argv, `… and ${more} more`] : argv,
    envNames: act.envNames.slice(0, MAX_WORDS).map((name) => fitText(name, MAX_WORD_BYTES)),
  };
}
