/** Clients of every kind that only listen: each tells the place of every event it hears, as cheaply as a client can. */
import { get } from "node:http";
import { connect } from "node:net";
import path from "node:path";

export interface Door {
  readonly url: string;
  readonly token: string;
  readonly home: string;
}

/** `seq`: the number that the door gave it. `mark`: the number that the writer gave it. */
export type OnReceived = (received: { readonly threadId: string; readonly seq: number; readonly mark: number }) => void;

export interface Reader extends Disposable {
  /** It follows; what is stored from now on must reach it. */
  readonly ready: Promise<void>;
}

export function sseReader({ url, token }: Door, threadId: string, onReceived: OnReceived): Reader {
  const ready = Promise.withResolvers<void>();
  const where = `${url}/api/threads/${threadId}/events`;
  const sent = get(where, { agent: false, headers: { authorization: `Bearer ${token}` } }, (response) => {
    const parts = cut("\n\n", (block) => {
      if (block.startsWith("event: caughtUp")) ready.resolve();
      const [, seq, mark] = /^id: (\d+)\n.*mark:(\d+):/s.exec(block) ?? [];
      if (mark !== undefined) onReceived({ threadId, seq: Number(seq), mark: Number(mark) });
    });
    response.setEncoding("utf8").on("data", parts).on("error", ready.reject);
  });
  sent.on("error", ready.reject);
  return { ready: ready.promise, [Symbol.dispose]: () => void sent.destroy() };
}

interface Line {
  send(message: unknown): void;
  onText(receive: (text: string) => void): void;
  readonly opened: Promise<void>;
  close(): void;
}

function websocketLine({ url, token }: Door): Line {
  const socket = new WebSocket(`${url.replace("http", "ws")}/?token=${token}`);
  const opened = Promise.withResolvers<void>();
  socket.addEventListener("open", () => opened.resolve());
  socket.addEventListener("error", () => opened.reject(new Error("no WebSocket")));
  return {
    send: (message) => socket.send(JSON.stringify(message)),
    onText: (receive) => socket.addEventListener("message", ({ data }) => receive(String(data))),
    opened: opened.promise,
    close: () => socket.close(),
  };
}

function socketLine({ home }: Door): Line {
  const socket = connect(path.join(home, "serve.sock"));
  const opened = Promise.withResolvers<void>();
  socket.on("connect", () => opened.resolve()).on("error", opened.reject);
  return {
    send: (message) => void socket.write(`${JSON.stringify(message)}\n`),
    onText: (receive) => void socket.setEncoding("utf8").on("data", cut("\n", receive)),
    opened: opened.promise,
    close: () => void socket.destroy(),
  };
}

const LINES = { websocket: websocketLine, socket: socketLine } as const;

/** A client of codex app-server that has taken up a thread. */
export function codexReader(kind: keyof typeof LINES, door: Door, threadId: string, onReceived: OnReceived): Reader {
  const line = LINES[kind](door);
  const steps: readonly unknown[] = [
    { id: 1, method: "initialize", params: { clientInfo: { name: "crowd", version: "0" } } },
    { id: 2, method: "thread/resume", params: { threadId, excludeTurns: true } },
  ];
  return follow(line, steps, (text) => {
    if (!text.includes('"item/completed"')) return;
    const [, mark] = /mark:(\d+):/.exec(text) ?? [];
    const [, seq] = /"seq":(\d+)/.exec(text) ?? [];
    if (mark !== undefined) onReceived({ threadId, seq: Number(seq), mark: Number(mark) });
  });
}

/** A client of chats hears of all of them. */
export function chatReader(door: Door, onReceived: OnReceived): Reader {
  return follow(
    websocketLine(door),
    [{ id: 1, method: "events.subscribe", params: { topic: "chat.item.*" } }],
    (text) => {
      if (!text.includes('"chat.item.completed"')) return;
      const [, threadId = ""] = /"chat_id":"([^"]+)"/.exec(text) ?? [];
      const [, mark] = /mark:(\d+):/.exec(text) ?? [];
      const [, seq] = /"seq":(\d+)/.exec(text) ?? [];
      if (mark !== undefined) onReceived({ threadId, seq: Number(seq), mark: Number(mark) });
    },
  );
}

/** Takes the steps one after the other, each when the one before was answered. */
function follow(line: Line, steps: readonly unknown[], receive: (text: string) => void): Reader {
  const ready = Promise.withResolvers<void>();
  let taken = 0;
  const next = (): void => {
    const step = steps[taken];
    taken += 1;
    if (step === undefined) ready.resolve();
    else line.send(step);
  };
  line.onText((text) => {
    if (text.startsWith('{"error"')) ready.reject(new Error(text));
    else if (text.startsWith('{"id"')) next();
    else receive(text);
  });
  const begun = async (): Promise<void> => {
    await line.opened;
    next();
    await ready.promise;
  };
  return { ready: begun(), [Symbol.dispose]: () => line.close() };
}

/** What comes in pieces, whole. */
function cut(end: string, receive: (whole: string) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const wholes = (rest + text).split(end);
    rest = wholes.pop() ?? "";
    for (const whole of wholes) receive(whole);
  };
}
