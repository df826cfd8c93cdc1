/** What tests of hops share: calls that want more than their sandbox gives, and what became of them. */
import { openJournal } from "@heddle/journal";
import type { ModelServer } from "@heddle/models/testing";
import type { EventOf, EventType, StoredEvent } from "@heddle/protocol";
import { isEndOf, startTurn, type Client } from "./app-server-client.ts";
import type { World } from "./heddle-process.ts";

export const ON_REQUEST = { approvalPolicy: "on-request", sandbox: "workspace-write" };
export const COMMAND = "item/commandExecution/requestApproval";
export const PERMISSIONS = "item/permissions/requestApproval";

export function escalated(cmd: string) {
  const args = { cmd, sandbox_permissions: "require_escalated", justification: "Need to write outside" };
  return { tool: "exec_command", args };
}

export function plain(cmd: string) {
  return { tool: "exec_command", args: { cmd } };
}

export function wanting(write: readonly string[], network = false) {
  const permissions = { file_system: { write }, ...(network ? { network: { enabled: true } } : {}) };
  return { tool: "request_permissions", args: { reason: "Need it", permissions } };
}

export async function eventsOf<T extends EventType>(
  world: World,
  threadId: string,
  type: T,
): Promise<readonly StoredEvent<EventOf<T>>[]> {
  await using journal = await openJournal({ home: world.home });
  const events = await journal.read({ stream: threadId, after: 0 });
  return events.filter((event): event is StoredEvent<EventOf<T>> => event.body.type === type);
}

/** Starts a turn, gives this answer to its question, and waits for its end. */
export async function answeredTurn(client: Client, threadId: string, given: { method: string; result: unknown }) {
  const from = client.received.length;
  const turnId = await startTurn(client, threadId, "go");
  const question = await client.note(given.method, from);
  client.send({ id: question.id, result: given.result });
  const ended = await client.waitFor((wire) => isEndOf(wire, turnId), from);
  return { turnId, question, ended, received: client.received.slice(from) };
}

/** What the model was told last. */
export function toldTo(model: ModelServer): string {
  return JSON.stringify(model.requests.at(-1)?.body);
}
