/** `heddle serve` on the port it remembers, and a client of its owner. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { HeddleClient } from "@heddle/client";
import type { ModelServer } from "@heddle/models/testing";
import { askServer, start, type Running, type World } from "./world.ts";

export interface Served extends Running {
  readonly url: string;
  readonly token: string;
  readonly client: HeddleClient;
}

/** One that many tests share lives longer than a run does. */
const DEADLINE_MS = 600_000;

export async function serve(world: World, model: ModelServer, more: readonly string[] = []): Promise<Served> {
  const options = askServer(model).flatMap((word, at, all) =>
    word === "-m" ? [] : all[at - 1] === "-m" ? ["-c", `model=${word}`] : [word],
  );
  const running = start(["serve", ...options, ...more], { world, deadlineMs: DEADLINE_MS });
  await running.sees("serving  unix");
  const { url } = JSON.parse(await readFile(path.join(world.home, "serve.json"), "utf8")) as { url: string };
  const token = (await readFile(path.join(world.home, "serve.token"), "utf8")).trim();
  const client = new HeddleClient({ url, token });
  return { ...running, url, token, client, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}
