/**
 * The record for clients of app-server: verified, exported, imported, purged. A bundle goes out as notifications and comes in as
 * several calls, because it has no bound and a message has one.
 */
import { setTimeout as delay } from "node:timers/promises";
import { purgeEvidence } from "@heddle/agent";
import { HeddleError, toHeddleError, uuidv7 } from "@heddle/protocol";
import { VerifyBody } from "@heddle/protocol/http";
import { z } from "zod";
import { bundleOf, partsOf, receive, takeOver, verdict, type Incoming } from "../../record/record.ts";
import { takeTurn } from "../../record/one-at-a-time.ts";
import type { Call } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import { requireKept } from "../thread-facts.ts";
import { ownMethod } from "./own-method.ts";

const id = z.string().min(1).max(256);
/** How often a client that is behind is looked at. */
const LOOK_MS = 20;

export const verifyRecord = ownMethod(VerifyBody, async (question, call) => {
  const gone = new AbortController();
  const forget = call.connection.ends.add({ [Symbol.asyncDispose]: async () => gone.abort() });
  try {
    return { result: { ...(await verdict(storeOf(call), question, { signal: gone.signal })) } };
  } finally {
    forget();
  }
});

export const purge = ownMethod(z.strictObject({ id }), async ({ id }, { server, connection }) => {
  return { result: { ...(await purgeEvidence(server.heddle, { id, by: connection.by })) } };
});

/** Lines come as `evidence/lines` after the answer; the last of these notifications says so, and why it is the last where it failed. */
const Export = z.strictObject({ threadId: z.string(), outputs: z.boolean().optional() });

export const exportEvidence = ownMethod(Export, async ({ threadId, outputs = false }, { server, connection }) => {
  const { id: thread } = await requireKept(server, threadId);
  const { journal } = server.heddle;
  // One for each connection: it is waited for, and holds a cursor.
  const turn = takeTurn(connection, "an export");
  const exportId = `exp_${uuidv7()}`;
  return {
    result: { exportId },
    after() {
      const told = tell(connection, exportId, bundleOf(journal, thread, outputs)).finally(() => turn[Symbol.dispose]());
      const forget = connection.ends.add({ [Symbol.asyncDispose]: () => told });
      told.then(forget, forget);
    },
  };
});

async function tell(connection: Connection, exportId: string, bundle: AsyncIterable<string>): Promise<void> {
  const say = (more: {
    readonly lines: readonly string[];
    readonly isLast: boolean;
    readonly failure?: object;
  }): void => connection.notify({ method: "evidence/lines", params: { exportId, ...more } });
  try {
    for await (const lines of partsOf(bundle)) {
      if (connection.isClosed) return;
      say({ lines, isLast: false });
      while (!connection.isIdle && !connection.isClosed) await delay(LOOK_MS);
    }
    say({ lines: [], isLast: true });
  } catch (error) {
    const { code, message } = toHeddleError(error);
    say({ lines: [], isLast: true, failure: { code, message } });
  }
}

/** The first call names no `importId` and gets one; the last says `isLast` and gets what was imported. */
const Import = z.strictObject({
  importId: id.optional(),
  lines: z.array(z.string()).max(100_000),
  isLast: z.boolean().optional(),
  trustKey: z.string().min(1).max(200).optional(),
});

interface OpenImport extends AsyncDisposable {
  readonly importId: string;
  readonly incoming: Incoming;
}

/** Of each connection at most one. */
const imports = new WeakMap<Connection, OpenImport>();

export const importEvidence = ownMethod(Import, async ({ importId, lines, isLast = false, trustKey }, call) => {
  const { connection } = call;
  const open = importId === undefined ? await openImport(call) : required(imports.get(connection), importId);
  try {
    for (const line of lines) await open.incoming.bundle.write(`${line}\n`);
    if (!isLast) return { result: { importId: open.importId } };
    const { by } = connection;
    return { result: { ...(await takeOver(storeOf(call), open.incoming, { by, trustKey })) } };
  } catch (error) {
    await open[Symbol.asyncDispose]();
    throw error;
  } finally {
    if (isLast) await open[Symbol.asyncDispose]();
  }
});

async function openImport(call: Call): Promise<OpenImport> {
  const { connection } = call;
  const incoming = await receive(storeOf(call));
  let forget = (): void => undefined;
  let ended: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    if (imports.get(connection)?.importId === open.importId) imports.delete(connection);
    forget();
    await incoming[Symbol.asyncDispose]();
  };
  const open: OpenImport = {
    importId: `imp_${uuidv7()}`,
    incoming,
    [Symbol.asyncDispose]: () => (ended ??= end()),
  };
  imports.set(connection, open);
  // A client that has gone does not finish it.
  forget = connection.ends.add(open);
  return open;
}

function required(open: OpenImport | undefined, importId: string): OpenImport {
  if (open?.importId === importId) return open;
  throw new HeddleError("evidence.not-found", `this connection has no import ${importId}`, {
    details: { id: importId },
  });
}

function storeOf({ server: { heddle, home } }: Call) {
  return { journal: heddle.journal, home };
}
