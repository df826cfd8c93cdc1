/** Tools that clients bring along, as the registry knows them: their names, and who says how a call went. */
import type { ClientTool, Failure, InputPart } from "@heddle/protocol";

export interface ClientTools {
  readonly tools: readonly ClientTool[];
  /** After this nobody waits for the client any more. */
  readonly timeoutMs: number;
  /** What a client says to the call with this item. Rejects when the signal aborts. */
  readonly answer: (itemId: string, signal: AbortSignal) => Promise<ClientToolAnswer>;
}

export interface ClientToolAnswer {
  readonly content: readonly InputPart[];
  readonly failure?: Failure | undefined;
}

/** By this name envelopes and records know it. */
export function clientToolName({ name, namespace }: ClientTool): string {
  return namespace === undefined ? `client.${name}` : `client.${namespace}.${name}`;
}

/** By this name models know it. */
export function offeredClientName({ name, namespace }: ClientTool): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}
