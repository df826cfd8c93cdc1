/** A model server on loopback and the configuration that points at it, the way a user would write it. */
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { openWorld, run, type Ran, type RunOptions, type World } from "./heddle-process.ts";

export const MOCK_KEY = { MOCK_KEY: "test-key-of-the-mock" };

export interface MockWorld extends AsyncDisposable {
  readonly world: World;
  readonly server: ModelServer;
  /** `heddle exec` with the key of the mock. */
  exec(args: readonly string[], options?: Partial<RunOptions>): Promise<Ran>;
  /** The text of the last request's body. */
  lastRequest(): string;
}

export async function openMockWorld(options: ModelServerOptions): Promise<MockWorld> {
  const world = await openWorld();
  const server = await startModelServer(options);
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "${server.url}/v1"\nenv_key = "MOCK_KEY"\nrequest_max_retries = 0\nstream_max_retries = 2\n`,
  );
  return {
    world,
    server,
    exec: (args, more = {}) => run(["exec", ...args], { world, ...more, env: { ...MOCK_KEY, ...more.env } }),
    lastRequest: () => JSON.stringify(server.requests.at(-1)?.body),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

export interface Line {
  readonly type: string;
  readonly item?: Readonly<Record<string, unknown>>;
  readonly [key: string]: unknown;
}

export function jsonLines({ stdout }: Ran): readonly Line[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line): Line => JSON.parse(line));
}

export function threadOf(ran: Ran): string {
  return String(jsonLines(ran).find(({ type }) => type === "thread.started")?.["thread_id"]);
}
