/** JSON-RPC over the lines of a program: requests with a deadline each, answers by id, and what it asks itself. */
import { HeddleError, reasonOf } from "@heddle/protocol";
import { z } from "zod";
import type { Wire } from "./conversation.ts";

/** A program that starts loads its configuration; a machine may be busy. */
export const BEGIN_MS = 60_000;
export const REQUEST_MS = 60_000;

const METHOD_NOT_FOUND = -32601;

const Id = z.union([z.string(), z.number()]);
const Message = z.object({
  id: Id.optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
});
/** Where programs put the reason of an error that they call internal. */
const Reason = z.union([
  z.string(),
  z.object({ details: z.string() }).transform(({ details }) => details),
  z.object({ message: z.string() }).transform(({ message }) => message),
]);

export type RpcId = z.infer<typeof Id>;

export interface RpcFailure {
  readonly code: number;
  readonly message: string;
}

export type RpcAnswer =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "error"; readonly error: RpcFailure };

export interface RpcOptions {
  readonly runner: string;
  /** In every message of ours. */
  readonly head: Readonly<Record<string, string>>;
  readonly wire: Wire;
  readonly onNotification: (method: string, params: unknown) => Promise<void>;
  /** Undefined: there is no such method here. */
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => Promise<object> | undefined;
  readonly onUnknown: (kind: string) => void;
}

export interface RpcPeer {
  /** `timeoutMs` undefined: it is waited for as long as the program runs. `runner.failed` where it answers with an error. */
  request(method: string, params: unknown, timeoutMs?: number): Promise<unknown>;
  /** The same, with an error as a value. */
  ask(method: string, params: unknown, timeoutMs?: number): Promise<RpcAnswer>;
  notify(method: string, params: unknown): Promise<void>;
  receive(message: unknown): Promise<void>;
  lost(error: HeddleError): void;
}

interface Waiting {
  readonly resolve: (answer: RpcAnswer) => void;
  readonly reject: (error: HeddleError) => void;
  readonly timer: NodeJS.Timeout | undefined;
}

export function createRpc({ runner, head, wire, onNotification, onRequest, onUnknown }: RpcOptions): RpcPeer {
  const waiting = new Map<RpcId, Waiting>();
  const asked = new Map<RpcId, AbortController>();
  let nextId = 1;
  let lostBy: HeddleError | undefined;

  async function ask(method: string, params: unknown, timeoutMs?: number): Promise<RpcAnswer> {
    if (lostBy !== undefined) throw lostBy;
    const id = nextId;
    nextId += 1;
    const { promise, resolve, reject } = Promise.withResolvers<RpcAnswer>();
    const late = (): void => {
      waiting.delete(id);
      reject(new HeddleError("runner.stalled", `${runner} has not answered ${method} within ${timeoutMs} ms`));
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
    waiting.set(id, { resolve, reject, timer });
    promise.catch(() => undefined);
    await wire.send({ ...head, id, method, params });
    return promise;
  }

  /** Not waited for by the reader: an answer may take a person. */
  function answer(id: RpcId, method: string, params: unknown): void {
    const control = new AbortController();
    asked.set(id, control);
    const found = onRequest(method, params, control.signal);
    if (found === undefined) onUnknown(method);
    const given = found ?? Promise.reject(new Error(`there is no method ${method} here`));
    const code = found === undefined ? METHOD_NOT_FOUND : -32_603;
    given
      .then(
        (result) => wire.send({ ...head, id, result }),
        (error: unknown) => wire.send({ ...head, id, error: { code, message: reasonOf(error) } }),
      )
      // The end of the program is noticed by the reader of its output.
      .catch(() => undefined)
      .finally(() => asked.delete(id));
  }

  return {
    ask,
    async request(method, params, timeoutMs) {
      const given = await ask(method, params, timeoutMs);
      if (given.kind === "result") return given.result;
      const { code, message } = given.error;
      throw new HeddleError("runner.failed", `${runner} refused ${method}: ${message}`, { details: { rpcCode: code } });
    },
    notify: (method, params) => wire.send({ ...head, method, params }),
    async receive(raw) {
      const parsed = Message.safeParse(raw);
      if (!parsed.success) return onUnknown("malformed");
      const { id, method, params, result, error } = parsed.data;
      if (method !== undefined && id !== undefined) return answer(id, method, params);
      if (method !== undefined) return onNotification(method, params);
      const one = id === undefined ? undefined : waiting.get(id);
      if (one === undefined || id === undefined) return onUnknown("answer");
      waiting.delete(id);
      clearTimeout(one.timer);
      one.resolve(error === undefined ? { kind: "result", result } : { kind: "error", error: withReason(error) });
    },
    lost(error) {
      lostBy = error;
      for (const { reject, timer } of waiting.values()) {
        clearTimeout(timer);
        reject(error);
      }
      waiting.clear();
      for (const control of asked.values()) control.abort(error);
    },
  };
}

function withReason({ code, message, data }: RpcFailure & { readonly data?: unknown }): RpcFailure {
  const reason = Reason.safeParse(data).data ?? "";
  return { code, message: reason === "" || message.includes(reason) ? message : `${message}: ${reason}` };
}
