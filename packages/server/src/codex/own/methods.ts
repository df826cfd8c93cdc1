/**
 * The methods of Heddle's own, each with its scope. They need `initialize` like any, and no capability: a client of Codex never
 * calls them. Whoever may only read sees and cannot act: of the dialect such a caller has these alone.
 */
import { scopeAllows, type Principal, type Role, type Scope } from "../../access/principals.ts";
import { RPC, RpcError } from "../../rpc/peer.ts";
import * as agents from "./agents.ts";
import { listEnvelopes, readEnvelope } from "./envelopes.ts";
import * as evidence from "./evidence.ts";
import * as record from "./record.ts";
import { hopBack, hopThread } from "./hops.ts";
import { SESSION_HANDLERS } from "./outside.ts";
import type { OwnMethod } from "./own-method.ts";

interface Row {
  readonly scope: Scope;
  readonly run: OwnMethod;
}

const reads = (run: OwnMethod): Row => ({ scope: "read", run });
const writes = (run: OwnMethod): Row => ({ scope: "write", run });
/** They work in folders of the machine, or leave a sandbox. */
const owns = (run: OwnMethod): Row => ({ scope: "admin", run });

export const OWN_METHODS: ReadonlyMap<string, Row> = new Map([
  ...SESSION_HANDLERS.map(([name, run]) => [name, writes(run)] as const),
  ...Object.entries({
    "envelope/list": owns(listEnvelopes),
    "envelope/read": owns(readEnvelope),
    "evidence/query": reads(evidence.queryEvidence),
    "evidence/count": reads(evidence.countEvidence),
    "evidence/get": reads(evidence.getEvidence),
    "evidence/chain": reads(evidence.readChain),
    "evidence/note": writes(evidence.note),
    "evidence/gate": owns(evidence.gate),
    "evidence/subscribe": reads(evidence.subscribe),
    "evidence/unsubscribe": reads(evidence.unsubscribe),
    "evidence/verify": writes(record.verifyRecord),
    "evidence/export": owns(record.exportEvidence),
    "evidence/import": owns(record.importEvidence),
    "evidence/purge": owns(record.purge),
    "thread/hop": owns(hopThread),
    "thread/hopBack": owns(hopBack),
    "agent/list": reads(agents.listAgents),
    "agent/get": reads(agents.getAgent),
    "agent/name": writes(agents.nameAgent),
    "agent/wake": writes(agents.wakeAgent),
    "message/tell": writes(agents.tell),
    "message/ask": writes(agents.ask),
    "message/list": reads(agents.listMessages),
    "message/get": reads(agents.getMessage),
  }),
]);

/** Methods of Codex reach files, commands, configuration and accounts, and know no roles: they are the owner's. */
export function mayCall(role: Role, method: string): boolean {
  const scope = method === "initialize" ? "read" : (OWN_METHODS.get(method)?.scope ?? "admin");
  return scopeAllows(role, scope);
}

/** Others than the owner have Heddle's own methods, the chat dialect and HTTP, where every method has a scope. */
export function requireScope({ role }: Principal, method: string): void {
  if (mayCall(role, method)) return;
  const what = !OWN_METHODS.has(method) ? "methods of codex app-server need" : `${method} needs`;
  const instead = scopeAllows(role, "write")
    ? "envelope sessions, messages, evidence, chat.* or HTTP"
    : "agent/*, message/* and evidence/* that only read, chat.* or HTTP";
  throw new RpcError(RPC.invalidRequest, `${what} more than the role ${role}; it may use ${instead}`, {
    code: "door.forbidden",
    role,
  });
}
