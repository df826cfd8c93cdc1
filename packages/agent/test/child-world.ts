/** A Heddle whose threads may start others, with a model server that answers each thread by its first user message. */
import { startModelServer, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import type { ProviderConfig } from "@heddle/models";
import type { EventBody, EventOf, ItemOf, StoredEvent } from "@heddle/protocol";
import { openTestHeddle, type TestHeddle, type TestHeddleOptions } from "./test-heddle.ts";

type Step = NonNullable<ProviderConfig["script"]>[number];
/** `ids`: of the child threads that the parent has been told of, in their order. */
export type Play = (ids: readonly string[], request: RecordedRequest) => Step | Promise<Step>;
/** By the beginning of the first input of a thread: its answers, one after the other; the last one again and again. */
export type Scripts = Readonly<Record<string, readonly (Step | Play)[]>>;

export interface ChildWorld extends AsyncDisposable {
  readonly t: TestHeddle;
  readonly server: ModelServer;
  /** Bodies of the requests of one thread. */
  asked(first: string): readonly RecordedRequest[];
  /** Resolves when a thread has asked this often. */
  arrived(first: string, count: number): Promise<void>;
}

export async function openChildWorld(scripts: Scripts, options: TestHeddleOptions = {}): Promise<ChildWorld> {
  const asked = new Map<string, RecordedRequest[]>();
  const waiting: { first: string; count: number; done: () => void }[] = [];
  const server = await startModelServer({
    respond: async (request) => {
      const first = Object.keys(scripts).find((name) => request.source.includes(`"text":"${name}`));
      if (first === undefined) throw new Error(`no script for ${request.source.slice(0, 2000)}`);
      const requests = [...(asked.get(first) ?? []), request];
      asked.set(first, requests);
      for (const wait of waiting) if (wait.first === first && requests.length >= wait.count) wait.done();
      const script = scripts[first] ?? [];
      const step = script[Math.min(request.answers, script.length - 1)] ?? {};
      return typeof step === "function" ? await step(idsIn(request.source), request) : step;
    },
  });
  const t = await openTestHeddle({
    providers: [server.provider("openai-responses", { family: "openai" })],
    childThreads: { maxDepth: 2, maxOpen: 6 },
    ...options,
    settings: { provider: "test", model: "m", ...options.settings },
  });
  return {
    t,
    server,
    asked: (first) => asked.get(first) ?? [],
    arrived(first, count) {
      if ((asked.get(first) ?? []).length >= count) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ first, count, done: resolve });
      return promise;
    },
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function idsIn(source: string): readonly string[] {
  return [...source.matchAll(/agent_id\\*":\\*"([0-9a-f-]{36})/g)].map(([, id = ""]) => id);
}

export const call = (tool: string, args: Record<string, unknown>): Step => ({ calls: [{ tool, args }] });

export function collabItems(events: readonly StoredEvent[]): ItemOf<"collabToolCall">[] {
  return events.flatMap(({ body }) =>
    body.type === "item.completed" && body.item.type === "collabToolCall" ? [body.item] : [],
  );
}

export function settled(events: readonly StoredEvent[]): EventOf<"tool.settled">[] {
  return events.flatMap(({ body }) => (body.type === "tool.settled" ? [body] : []));
}

export function ofType<T extends EventBody["type"]>(events: readonly StoredEvent[], type: T): EventOf<T>[] {
  return events.flatMap(({ body }) => (isOf(body, type) ? [body] : []));
}

function isOf<T extends EventBody["type"]>(body: EventBody, type: T): body is EventOf<T> {
  return body.type === type;
}
