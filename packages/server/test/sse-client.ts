/** A small reader of server-sent events over one connection. */
import { get, type IncomingMessage } from "node:http";

export interface Message {
  readonly id: number | undefined;
  readonly event: string;
  readonly data: { readonly [name: string]: unknown };
}

export interface SseClient extends Disposable {
  readonly response: IncomingMessage;
  readonly messages: readonly Message[];
  readonly hasEnded: boolean;
  /** The first message that fits, of those that came and those to come; fails when the stream ends before. */
  waitFor(fits: (message: Message) => boolean): Promise<Message>;
  readonly ended: Promise<void>;
}

export function follow(url: string, token: string, headers: Readonly<Record<string, string>> = {}): Promise<SseClient> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent: false, headers: { ...headers, authorization: `Bearer ${token}` } }, (response) => {
      resolve(read(response));
    });
    sent.on("error", reject);
  });
}

function read(response: IncomingMessage): SseClient {
  const messages: Message[] = [];
  const waiting = new Set<() => void>();
  const over = Promise.withResolvers<void>();
  let hasEnded = false;
  let rest = "";
  const wake = (): void => {
    for (const look of waiting) look();
  };
  response.setEncoding("utf8").on("data", (text: string) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parse(block);
      if (message !== undefined) messages.push(message);
    }
    wake();
  });
  response
    .on("error", () => undefined)
    .on("close", () => {
      hasEnded = true;
      over.resolve();
      wake();
    });
  return {
    response,
    messages,
    get hasEnded() {
      return hasEnded;
    },
    ended: over.promise,
    waitFor(fits) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = messages.find(fits);
          if (found !== undefined) resolve(found);
          else if (hasEnded) reject(new Error(`the stream ended after ${messages.length} messages`));
          else return;
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      });
    },
    [Symbol.dispose]: () => void response.destroy(),
  };
}

function parse(block: string): Message | undefined {
  let id: number | undefined;
  let event = "message";
  let data: string | undefined;
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) id = Number(line.slice(4));
    if (line.startsWith("event: ")) event = line.slice(7);
    if (line.startsWith("data: ")) data = line.slice(6);
  }
  return data === undefined ? undefined : { id, event, data: JSON.parse(data) as Message["data"] };
}
