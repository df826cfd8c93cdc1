/** Plays one scenario through one program and writes down what each client was sent. */
import { once } from "node:events";
import path from "node:path";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { openFixture, type Fixture } from "../fixture.ts";
import type { Program } from "../program.ts";
import { instructionsIn } from "../instructions-in-request.ts";
import { blankAll } from "./blank.ts";
import { Client, overPipes, overSocket, type Message } from "./client.ts";
import { namespacedAnswer } from "./namespaced.ts";
import type { Start, Started } from "./start.ts";
import type { Move, Scenario } from "./scenario.ts";

/** What one client was sent, in order. An answer carries the method it answers. */
export interface Received {
  readonly client: string;
  readonly messages: readonly Message[];
}

export interface ScenarioSeen {
  readonly id: string;
  readonly received: readonly Received[];
  /** The exit code once the only client has gone; absent where the program was ended. */
  readonly exit?: number | string;
}

export interface Played {
  readonly seen: ScenarioSeen;
  /** As it came, before anything was blanked. */
  readonly raw: readonly Received[];
}

const DEADLINE_MS = 8_000;
const QUIET_MS = 200;
const EXIT_MS = 12_000;

export async function playScenario(program: Program, scenario: Scenario, start: Start): Promise<Played> {
  const { faults, script } = scenario;
  const opened: { fixture?: Fixture } = {};
  await using server = await startModelServer({
    respond: ({ answers }) => {
      const step = JSON.stringify(script?.[answers] ?? { text: "The script has ended." });
      return JSON.parse(opened.fixture?.fill(step) ?? "{}");
    },
    faults: (request) => {
      const fault = Array.isArray(faults) ? faults[request.number] : faults;
      return fault ?? (program.name === "codex" ? namespacedAnswer(request, script?.[request.answers]) : undefined);
    },
  });
  await using fixture = await openFixture(program, server.url, scenario);
  opened.fixture = fixture;
  const table = new Table(start, scenario, fixture);
  const exit = await table.play();
  const raw = table.received();
  return {
    raw,
    seen: {
      id: scenario.id,
      received: [...blankAll(raw, (text) => fixture.blank(text)), ...askedOf(scenario, server)],
      ...(exit === undefined ? {} : { exit }),
    },
  };
}

/** Beside the clients, what the model was sent: a receiver like them. */
function askedOf(scenario: Scenario, { requests }: ModelServer): readonly Received[] {
  const { marks } = scenario;
  if (marks === undefined) return [];
  const asks = JSON.stringify(scenario);
  const messages = requests.map(({ body }) => ({ method: "model/asked", params: instructionsIn(body, marks, asks) }));
  return [{ client: "model", messages }];
}

class Table {
  readonly #scenario: Scenario;
  readonly #fixture: Fixture;
  readonly #startServer: Start;
  #server: Started;
  readonly #clients = new Map<string, Client>();
  readonly #names = new Map<string, string>();
  readonly #socket: string;
  #threads = 0;
  #isRefused = false;

  constructor(start: Start, scenario: Scenario, fixture: Fixture) {
    this.#startServer = start;
    this.#scenario = scenario;
    this.#fixture = fixture;
    this.#socket = path.join(fixture.root, "s");
    this.#server = this.#start();
  }

  #start(): Started {
    const listen = this.#scenario.door === undefined ? [] : ["--listen", `unix://${this.#socket}`];
    const { workspace, env } = this.#fixture;
    return this.#startServer({ args: listen, cwd: workspace, env });
  }

  async play(): Promise<number | string | undefined> {
    try {
      await this.#open("a");
      for (const move of this.#scenario.moves) {
        const missed = await this.#make(move);
        if (missed === undefined) continue;
        this.#client(move).messages.push({ missed });
        break;
      }
      await Promise.all([...this.#clients.values()].map((client) => client.quiet(QUIET_MS)));
      return await this.#exit();
    } finally {
      this.#end();
    }
  }

  received(): readonly Received[] {
    return [...this.#clients].map(([client, { messages, calls }]) => ({
      client,
      messages: messages.map((message) =>
        "method" in message || !("id" in message)
          ? message
          : { answerTo: calls.get(message["id"]) ?? message["id"], ...message },
      ),
    }));
  }

  async #make(move: Move): Promise<string | undefined> {
    const client = this.#client(move);
    if ("call" in move) {
      const id = client.call(move.call, this.#fill(move.params));
      if (move.isLeft === true) return undefined;
      const answer = await client.answerTo(id, DEADLINE_MS);
      if (answer === undefined) return `the answer to ${move.call}`;
      this.#isRefused = "error" in answer;
      this.#keep(move.call, answer["result"], move.keep ?? {});
    } else if ("say" in move) client.say(this.#fill(move.say));
    else if ("until" in move) {
      // What was refused sets nothing going.
      if (this.#isRefused) return move.until;
      const found = await client.next(move.until, this.#fill(move.where), DEADLINE_MS);
      if (found === undefined) return move.until;
      this.#keep(move.until, found["params"], move.keep ?? {});
    } else if ("reply" in move) {
      const isThere = await client.reply(move.to, this.#fill(move.reply), DEADLINE_MS);
      if (!isThere) return move.to;
    } else if ("open" in move) await this.#open(move.open);
    else if ("restart" in move) await this.#restart(move.restart);
    else this.#clients.get(move.leave)?.leave();
    return undefined;
  }

  #client({ client = "a" }: Move): Client {
    const found = this.#clients.get(client);
    if (found === undefined) throw new Error(`there is no client ${client}`);
    return found;
  }

  async #open(name: string): Promise<void> {
    const client = new Client();
    this.#clients.set(name, client);
    if (this.#scenario.door === undefined) overPipes(this.#server, client);
    else await overSocket(this.#socket, client);
  }

  async #restart(name: string): Promise<void> {
    const { ended } = this.#server;
    this.#end();
    await ended;
    this.#server = this.#start();
    await this.#open(name);
  }

  #fill<T>(value: T): T {
    if (value === undefined) return value;
    let words = this.#fixture.fill(JSON.stringify(value), this.#names.get("thread") ?? "{thread}");
    // Into the JSON of a text.
    for (const [name, known] of this.#names) words = words.replaceAll(`{${name}}`, JSON.stringify(known).slice(1, -1));
    return JSON.parse(words);
  }

  #keep(method: string, result: unknown, wanted: Readonly<Record<string, string>>): void {
    const thread = at(result, "thread.id");
    if (typeof thread === "string" && /^thread\/(start|fork)$/.test(method)) {
      this.#threads += 1;
      this.#names.set(this.#threads === 1 ? "thread" : `thread${this.#threads}`, thread);
    }
    const turn = at(result, "turn.id");
    if (typeof turn === "string") this.#names.set("turn", turn);
    for (const [name, where] of Object.entries(wanted)) this.#names.set(name, String(at(result, where)));
  }

  async #exit(): Promise<number | string | undefined> {
    if (this.#scenario.door !== undefined) return undefined;
    const { input, ended } = this.#server;
    input.end();
    const [exit] = await Promise.race([ended.then((code) => [code]), once(AbortSignal.timeout(EXIT_MS), "abort")]);
    return typeof exit === "number" || typeof exit === "string" ? exit : "deadline";
  }

  /** The program and whatever it left running. */
  #end(): void {
    for (const client of this.#clients.values()) client.leave();
    this.#server.kill();
  }
}

function at(value: unknown, where: string): unknown {
  return where
    .split(".")
    .reduce<unknown>(
      (inner, name) =>
        typeof inner === "object" && inner !== null ? new Map(Object.entries(inner)).get(name) : undefined,
      value,
    );
}
