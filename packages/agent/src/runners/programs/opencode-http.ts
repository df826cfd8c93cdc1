/** Requests to a server of OpenCode over its forwarder: a deadline each, and answers by their number. */
import { HeddleError, type HeddleError as Lost } from "@heddle/protocol";
import { z } from "zod";
import type { Wire } from "./conversation.ts";
import { REQUEST_MS } from "./rpc.ts";

const Answer = z.object({
  id: z.number(),
  status: z.number().optional(),
  body: z.unknown().optional(),
  problem: z.string().optional(),
});

export interface HttpAnswer {
  readonly status: number;
  readonly body: unknown;
}

type HttpMethod = "GET" | "POST" | "DELETE";

export interface OpenCodeHttp {
  /** Whatever its status. */
  ask(method: HttpMethod, path: string, body?: object): Promise<HttpAnswer>;
  /** `runner.failed` unless it is done. */
  request(method: HttpMethod, path: string, body?: object): Promise<unknown>;
  /** False: the message is no answer. */
  receive(message: unknown): boolean;
  lost(error: Lost): void;
}

interface Waiting {
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Lost) => void;
  readonly timer: NodeJS.Timeout;
  readonly path: string;
}

/** The forwarder gives up before. */
const GRACE_MS = 5000;

export function createOpenCodeHttp(wire: Wire): OpenCodeHttp {
  const waiting = new Map<number, Waiting>();
  let nextId = 1;
  let lostBy: Lost | undefined;

  async function ask(method: HttpMethod, path: string, body?: object): Promise<HttpAnswer> {
    if (lostBy !== undefined) throw lostBy;
    const id = nextId;
    nextId += 1;
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    promise.catch(() => undefined);
    const late = (): void => {
      waiting.delete(id);
      reject(new HeddleError("runner.stalled", `opencode has not answered ${path}`));
    };
    waiting.set(id, { resolve, reject, timer: setTimeout(late, REQUEST_MS + GRACE_MS), path });
    await wire.send({ id, method, path, ...(body === undefined ? {} : { body }) });
    return promise;
  }

  return {
    ask,
    async request(method, path, body) {
      const { status, body: answer } = await ask(method, path, body);
      if (status >= 200 && status < 300) return answer;
      const said = JSON.stringify(answer ?? "").slice(0, 500);
      throw new HeddleError("runner.failed", `opencode answered ${path} with ${status}: ${said}`);
    },
    receive(message) {
      const answer = Answer.safeParse(message).data;
      const one = answer && waiting.get(answer.id);
      if (answer === undefined || one === undefined) return answer !== undefined;
      waiting.delete(answer.id);
      clearTimeout(one.timer);
      if (answer.status !== undefined) one.resolve({ status: answer.status, body: answer.body });
      else
        one.reject(
          new HeddleError("runner.failed", `the request ${one.path} to opencode failed: ${answer.problem ?? ""}`),
        );
      return true;
    },
    lost(error) {
      lostBy = error;
      for (const { reject, timer } of waiting.values()) {
        clearTimeout(timer);
        reject(error);
      }
      waiting.clear();
    },
  };
}
