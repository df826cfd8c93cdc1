/** A client of Codex, as it is, over either program: a fixture and a scripted model, and what the model was asked. */
import { startModelServer, type Fault, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import { namespacedAnswer } from "./app-server/namespaced.ts";
import { MOCK_CONFIG, say, type ExecCase, type Step } from "./exec-case.ts";
import { openFixture, type Fixture } from "./fixture.ts";
import type { Program } from "./program.ts";

export interface ClientWorld extends AsyncDisposable {
  readonly fixture: Fixture;
  readonly server: ModelServer;
  /** The body of a request, as far as the tests look at it. */
  request(number: number): RequestBody;
}

export interface RequestBody {
  readonly model: string;
  readonly effort: unknown;
  readonly verbosity: unknown;
  readonly format: unknown;
  readonly images: number;
  /** What the user said, one text for each message. */
  readonly prompts: readonly string[];
  /** Everything said to the model that no user said: instructions, and messages of the developer and the system. */
  readonly told: string;
  /** What the model was told of its calls. */
  readonly outputs: readonly string[];
}

export interface ClientWorldOptions extends Pick<ExecCase, "config" | "isOutsideGit" | "setUp" | "files"> {
  readonly script?: readonly Step[];
  readonly faults?: readonly (Fault | undefined)[] | (() => Fault);
  readonly deltaChars?: number;
}

const HELLO: readonly Step[] = [say("Hello."), say("Again."), say("Once more.")];

export async function openClientWorld(program: Program, options: ClientWorldOptions = {}): Promise<ClientWorld> {
  const { script = HELLO, faults, deltaChars } = options;
  const namespaced = (request: RecordedRequest): Fault | undefined =>
    program.name === "codex" ? namespacedAnswer(request, script[request.answers]) : undefined;
  const server = await startModelServer({
    script,
    faults: faults ?? namespaced,
    ...(deltaChars === undefined ? {} : { deltaChars }),
  });
  const fixture = await openFixture(program, server.url, { config: MOCK_CONFIG, ...options });
  return {
    fixture,
    server,
    request: (number) => bodyOf(server.requests[number]?.body),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    },
  };
}

interface Wire {
  readonly model?: string;
  readonly instructions?: string;
  readonly reasoning?: { readonly effort?: unknown };
  readonly text?: { readonly format?: unknown; readonly verbosity?: unknown };
  readonly input?: readonly Entry[];
}

interface Entry {
  readonly type?: string;
  readonly role?: string;
  readonly content?: readonly { readonly type: string; readonly text?: string }[];
  readonly output?: unknown;
}

function bodyOf(body: unknown): RequestBody {
  // The server has parsed it and both programs speak the Responses wire; a missing field shows in the test.
  const wire = (body ?? {}) as Wire;
  const input = wire.input ?? [];
  const textOf = ({ content = [] }: Entry): string => content.map(({ text = "" }) => text).join("");
  const users = input.filter(({ role }) => role === "user");
  const others = input.filter(({ role }) => role === "developer" || role === "system");
  return {
    model: wire.model ?? "",
    effort: wire.reasoning?.effort,
    verbosity: wire.text?.verbosity,
    format: wire.text?.format,
    images: users.flatMap(({ content = [] }) => content).filter(({ type }) => type === "input_image").length,
    prompts: users.map(textOf),
    told: [wire.instructions ?? "", ...others.map(textOf)].join("\n"),
    outputs: input.flatMap(({ type, output }) => (type?.endsWith("_output") === true ? [JSON.stringify(output)] : [])),
  };
}
