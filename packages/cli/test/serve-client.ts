/** `heddle serve`, or another command with its doors, in a process of its own, and a client that speaks plain HTTP. */
import { readFile } from "node:fs/promises";
import { get, request } from "node:http";
import path from "node:path";
import { KEY } from "./app-server-client.ts";
import { start, type Running, type World } from "./heddle-process.ts";

export interface Served extends AsyncDisposable {
  readonly running: Running;
  readonly url: string;
  readonly token: string;
  call(method: string, path: string, body?: unknown): Promise<Called>;
  /** The events of a thread, or of `tasks/ID`, after a cursor, until the last one fits; all of them. */
  events(stream: string, until: (event: StreamEvent) => boolean, after?: number): Promise<readonly StreamEvent[]>;
}

export interface Called {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface StreamEvent {
  readonly seq: number;
  readonly body: { readonly type: string; readonly [name: string]: unknown };
}

export interface StartOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export function startServe(world: World, options: StartOptions = {}): Promise<Served> {
  return startDoors("serve", world, options);
}

/** `says`: what it prints when its doors are open. */
export async function startDoors(
  command: string,
  world: World,
  { args = [], env = {}, says = "token    " }: StartOptions & { readonly says?: string } = {},
): Promise<Served> {
  const running = start([command, ...args], { world, env: { ...KEY, ...env } });
  await running.sees(says);
  const { url } = JSON.parse(await readFile(path.join(world.home, "serve.json"), "utf8")) as { readonly url: string };
  const token = (await readFile(path.join(world.home, "serve.token"), "utf8")).trim();
  return {
    running,
    url,
    token,
    call: (method, where, body) => call({ url, token }, method, where, body),
    events: (stream, until, after = 0) => events({ url, token }, stream, until, after),
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

interface ServerAddress {
  readonly url: string;
  readonly token: string;
}

export function call({ url, token }: ServerAddress, method: string, where: string, body?: unknown): Promise<Called> {
  return new Promise((resolve, reject) => {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const sent = request(
      `${url}${where}`,
      { method, agent: false, headers: { authorization: `Bearer ${token}`, ...json } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("error", reject).on("end", () => {
          resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) as Called["json"] });
        });
      },
    );
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function events(
  { url, token }: ServerAddress,
  stream: string,
  until: (event: StreamEvent) => boolean,
  after: number,
): Promise<readonly StreamEvent[]> {
  return new Promise((resolve, reject) => {
    const received: StreamEvent[] = [];
    const resource = stream.includes("/") ? stream : `threads/${stream}`;
    const where = `${url}/api/${resource}/events?after=${after}`;
    const sent = get(where, { agent: false, headers: { authorization: `Bearer ${token}` } }, (response) => {
      let rest = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        const blocks = (rest + text).split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          const [, data] = /^id: \d+\ndata: (.*)$/s.exec(block) ?? [];
          if (data === undefined) continue;
          const event = JSON.parse(data) as StreamEvent;
          received.push(event);
          if (!until(event)) continue;
          response.destroy();
          resolve(received);
          return;
        }
      });
      response.on("error", () => undefined);
      response.on("close", () =>
        reject(new Error(`the stream ended after ${received.map(({ body }) => body.type).join(", ")}`)),
      );
    });
    sent.on("error", reject);
  });
}

export const isTurnEnd = ({ body }: StreamEvent): boolean => body.type === "turn.completed";

export async function newThread(served: Served): Promise<string> {
  return String((await served.call("POST", "/api/threads", {})).json["id"]);
}
