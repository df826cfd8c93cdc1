/** Tools that clients bring: their names, and their results. */
import type { ClientTool, Failure, InputPart } from "@heddle/protocol";

export interface ClientTools {
  readonly tools: readonly ClientTool[];
  readonly timeoutMs: number;
  /** The client's result of the call with this item. Rejects when the signal aborts. */
  readonly answer: (itemId: string, signal: AbortSignal) => Promise<ClientToolAnswer>;
}

export interface ClientToolAnswer {
  readonly content: readonly InputPart[];
  readonly failure?: Failure | undefined;
}

/** The name in envelopes and records. */
export function clientToolName({ name, namespace }: ClientTool): string {
  return namespace === undefined ? `client.${name}` : `client.${namespace}.${name}`;
}

/** The name that models see. */
export function offeredClientName({ name, namespace }: ClientTool): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}
