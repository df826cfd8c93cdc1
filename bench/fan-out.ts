/** Events of one thread to many readers over HTTP: frames that reach them for each second of the server's CPU. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { openJournal } from "@heddle/journal";
import { newThreadId, type EventBody } from "@heddle/protocol";
import type { RunOptions } from "./measure.ts";
import type { Subject } from "./subjects.ts";

const READERS = 200;
const EVENTS = 4000;
const BATCH = 20;
/** What Linux counts CPU time in. */
const TICKS_A_SECOND = 100;

export async function measureFanOut(subject: Subject, { cwd, env }: RunOptions): Promise<number> {
  const home = env["HEDDLE_HOME"] ?? "";
  await using journal = await openJournal({ home, secrets: [] });
  const stream = newThreadId();
  await journal.append({
    stream,
    author: "user:owner",
    events: [{ type: "thread.created", v: 1, workspace: cwd, origin: "bench" }],
  });
  const [file = "", ...args] = subject.serve ?? [];
  const child = spawn(file, args, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    for await (const chunk of child.stdout.setEncoding("utf8")) if (String(chunk).includes("serving  http")) break;
    const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8")) as { url: string };
    const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
    const readers = Array.from({ length: READERS }, () => openReader(new URL(url), token, stream));
    await Promise.all(readers.map(({ caughtUp }) => caughtUp));
    const before = await cpuSeconds(child.pid ?? 0);
    for (let sent = 0; sent < EVENTS; sent += BATCH) {
      await journal.append({
        stream,
        author: "system",
        events: Array.from({ length: BATCH }, named),
        durability: "relaxed",
      });
    }
    await Promise.all(readers.map(({ done }) => done));
    return (READERS * EVENTS) / ((await cpuSeconds(child.pid ?? 0)) - before);
  } finally {
    child.kill("SIGTERM");
    await once(child, "close");
  }
}

function named(): EventBody {
  return { type: "thread.named", v: 1, name: "a name of some forty characters, as names go" };
}

/** As cheap as a reader can be: it looks for the last id in what comes. */
function openReader(url: URL, token: string, threadId: string): { caughtUp: Promise<void>; done: Promise<void> } {
  const caughtUp = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const socket = connect(Number(url.port), url.hostname, () => {
    const head = [
      `GET /api/threads/${threadId}/events HTTP/1.1`,
      `host: ${url.host}`,
      `authorization: Bearer ${token}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
  });
  let tail = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    tail = tail.slice(-200) + text;
    if (tail.includes("event: caughtUp")) caughtUp.resolve();
    if (!tail.includes(`id: ${EVENTS + 1}\n`)) return;
    done.resolve();
    socket.destroy();
  });
  socket.on("error", (error) => {
    caughtUp.reject(error);
    done.reject(error);
  });
  return { caughtUp: caughtUp.promise, done: done.promise };
}

async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}
