/** Requests and readers that the tests of this package share. */
import { isHeddleError, type HeddleError } from "@heddle/protocol";
import { resolveProvider, type Provider, type ProviderConfig } from "../providers/providers.ts";
import { streamModel, type ModelEvent, type ModelRequest, type StreamOptions } from "../requests/stream.ts";
import { startModelServer, type HttpWire, type ModelServer } from "./testing.ts";

export const HTTP_WIRES: readonly HttpWire[] = ["openai-responses", "openai-chat", "anthropic", "gemini"];

export const TOOLS: ModelRequest["tools"] = [
  {
    name: "exec_command",
    description: "Runs a shell command.",
    shape: "json",
    parameters: { type: "object", properties: { cmd: { type: "string" } }, required: ["cmd"] },
  },
  { name: "apply_patch", description: "Edits files.", shape: "freeform" },
];

export function sampleRequest(overrides: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "some-model",
    instructions: "Be brief.",
    input: [{ kind: "user", parts: [{ type: "text", text: "hello" }] }],
    tools: TOOLS,
    cacheKey: "thread-1",
    ...overrides,
  };
}

export function testProvider(server: ModelServer, wire: HttpWire, overrides: Partial<ProviderConfig> = {}): Provider {
  return resolveProvider([server.provider(wire, overrides)], "test", {});
}

export interface Outcome {
  readonly events: readonly ModelEvent[];
  readonly error?: HeddleError;
}

/** Reads a stream to its end; a failure is part of the outcome. Anything but a HeddleError is a bug and thrown. */
export async function collect(
  provider: Provider,
  request: ModelRequest = sampleRequest(),
  options: Partial<StreamOptions> = {},
): Promise<Outcome> {
  const events: ModelEvent[] = [];
  try {
    const signal = new AbortController().signal;
    for await (const event of streamModel(provider, request, { signal, ...options })) events.push(event);
    return { events };
  } catch (error) {
    if (!isHeddleError(error)) throw error;
    return { events, error };
  }
}

/** What these events of a server come to. */
export async function decode(wire: HttpWire, ...events: readonly unknown[]): Promise<Outcome> {
  const body = events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");
  await using server = await startModelServer({ faults: () => ({ kind: "body", body }) });
  return await collect(testProvider(server, wire, { maxAttempts: 1 }));
}

export function completedOf({ events, error }: Outcome): Extract<ModelEvent, { type: "completed" }> {
  const last = events.at(-1);
  if (last?.type !== "completed") throw error ?? new Error(`no completed event, but ${JSON.stringify(last)}`);
  return last;
}

export function typesOf({ events }: Outcome): readonly string[] {
  return events.map((event) => event.type).filter((type, index, all) => type !== all[index - 1]);
}
