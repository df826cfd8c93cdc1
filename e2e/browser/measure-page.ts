/**
 * The dashboard in a real Chromium, in front of a real `heddle serve`: how soon a long run is there, how it scrolls, what a
 * fast stream costs, what it keeps in memory, how long lists open. Frames are those that the browser drew; where a busy
 * machine would change a figure, it is the processor time of the page.
 * Usage: node --conditions=heddle-source e2e/browser/measure-page.ts. Prints one line of JSON (`bench/page.ts`).
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { openJournal } from "@heddle/journal";
import { newItemId, newThreadId, newTurnId, NO_USAGE, type EventBody, type Item } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { openTasks } from "@heddle/tasks";
import type { CDPSession, Page } from "playwright-core";
import { median, percentile } from "../../bench/measure.ts";
import type { PageFigures } from "../../bench/page.ts";
import { unpackChromium } from "./chromium.ts";
import { buildWithPage } from "./setup.ts";
import type { World } from "../world.ts";
import type { Stage } from "./stage.ts";

const STEPS = 10_000;
const STEPS_A_TURN = 40;
const TASKS = 10_000;
const AT_ONCE = 500;
const DIFF_LINES = 20_000;
const OPENINGS = 5;
const SCROLL_FRAMES = 240;
/** As much as 5,000 pieces a second for ten seconds, in bursts: a model says them as fast as it is read. */
const ANSWERS = 10;
const DELTAS_AN_ANSWER = 5_000;
const ANSWER_EVERY_MS = 1_000;
const DRAWN_CHARS = 10_000;
const CALL = { tool: "exec_command", args: { cmd: "true" } } as const;
const DELTA_CHARS = 8;

process.stdout.write(`${JSON.stringify(await measurePage())}\n`);

async function measurePage(): Promise<PageFigures> {
  const folder = await mkdtemp(path.join(tmpdir(), "heddle-bench-page-"));
  try {
    // Before e2e/world.ts is loaded: it reads which launcher to start.
    const launcher = buildWithPage(path.join(folder, "built"));
    process.env["HEDDLE_E2E_LAUNCHER"] = launcher;
    const { openStage } = await import("./stage.ts");
    let threads: readonly string[] = [];
    // Before the server begins, which would look at every task that comes.
    const config = async (world: World): Promise<string> => {
      threads = await writeThreads(world);
      await writeTasks(world);
      return "";
    };
    await using stage = await openStage({ unpacked: await unpackChromium(), deltaChars: DELTA_CHARS, config });
    const firstLoadKb = await firstLoad(launcher);
    const opened = await measureOpening(stage, threads);
    const streamed = await measureStream(stage);
    const diffCpuMs = await measureDiff(stage);
    return { firstLoadKb, ...opened, ...streamed, diffCpuMs, tasksCpuMs: await measureTasksPage(stage) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** As its build counts it: every script that is loaded before anything is drawn. */
async function firstLoad(launcher: string): Promise<number> {
  const page = path.join(path.dirname(launcher), "..", "dist", "dashboard");
  const html = await readFile(path.join(page, "index.html"), "utf8");
  const files = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)].map(([, file]) => file ?? "");
  const sizes = await Promise.all(files.map(async (file) => gzipSync(await readFile(path.join(page, file))).length));
  return sizes.reduce((sum, size) => sum + size, 0) / 1000;
}

/** Straight into the record: playing it would take an hour. */
async function writeThreads(world: World): Promise<readonly string[]> {
  await using journal = await openJournal({ home: world.home, secrets: [] });
  const threads: string[] = [];
  for (let made = 0; made < OPENINGS; made += 1) {
    const stream = newThreadId();
    threads.push(stream);
    const created: EventBody = { type: "thread.created", v: 1, workspace: world.workspace, origin: "bench" };
    await journal.append({ stream, author: "user:owner", events: [created] });
    for (let step = 0; step < STEPS; step += STEPS_A_TURN)
      await journal.append({ stream, author: "system", events: turnOf(step, world.workspace) });
  }
  return threads;
}

function turnOf(first: number, cwd: string): EventBody[] {
  const turnId = newTurnId();
  const input = [{ type: "text" as const, text: `turn from step ${first}` }];
  const holder = { pid: 1, startTicks: "1", bootId: "bench", pidNamespace: "bench" };
  const settings = {
    provider: "mock",
    model: "gpt-5.5",
    sandboxMode: "workspace-write" as const,
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never" as const,
  };
  const steps = Array.from({ length: STEPS_A_TURN }, (_, index) => stepOf(first + index, cwd));
  return [
    { type: "turn.admitted", v: 1, turnId, input, settings, holder },
    ...steps.flatMap((item): EventBody[] => [
      { type: "item.started", v: 1, turnId, item: begun(item) },
      { type: "item.completed", v: 1, turnId, item },
    ]),
    { type: "turn.completed", v: 1, turnId, status: "completed", usage: NO_USAGE, durationMs: 1 },
  ];
}

function stepOf(step: number, cwd: string): Item {
  const id = newItemId();
  if (step % 4 === 0)
    return { type: "agentMessage", id, text: `Step ${step}: ${"it goes on as planned, ".repeat(1 + (step % 5))}` };
  const command = `node --test packages/part-${step % 17}/step-${step}.test.ts`;
  const output = `line ${step}\n`.repeat(20 + (step % 80));
  const called = { callId: `call-${step}`, status: "completed" as const, durationMs: step % 900 };
  return { type: "commandExecution", id, ...called, command, cwd, output, exitCode: step % 23 === 0 ? 1 : 0 };
}

function begun(item: Item): Item {
  if (item.type === "agentMessage") return { ...item, text: "" };
  if (item.type !== "commandExecution") return item;
  const { exitCode: _code, durationMs: _ms, ...rest } = item;
  return { ...rest, output: "", status: "inProgress" };
}

/** In the page: leads to an address as a click does, and says when the first step was on the screen. */
async function openInPage(page: Page, address: string, selector: string): Promise<number> {
  return await page.evaluate(
    ({ to, wanted }) =>
      new Promise<number>((resolve) => {
        const startedAt = performance.now();
        const look = (): void => {
          if (document.querySelector(wanted) === null) requestAnimationFrame(look);
          // What was found is drawn with the next frame.
          else requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - startedAt)));
        };
        history.pushState(null, "", to);
        dispatchEvent(new PopStateEvent("popstate"));
        look();
      }),
    { to: address, wanted: selector },
  );
}

async function cpuMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN);
}

async function watched(page: Page): Promise<CDPSession> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return session;
}

async function measureOpening(
  stage: Stage,
  threads: readonly string[],
): Promise<Pick<PageFigures, "openMs" | "openCpuMs" | "scrollFrameMs">> {
  await using seat = await stage.sit({ at: "/threads" });
  const { page } = seat;
  const session = await watched(page);
  const [times, cpus]: [number[], number[]] = [[], []];
  for (const thread of threads) {
    const before = await cpuMs(session);
    times.push(await openInPage(page, `/threads/${thread}`, ".tl .st"));
    cpus.push((await cpuMs(session)) - before);
    if (thread !== threads.at(-1)) await openInPage(page, "/threads", "main.threads, main h1");
  }
  return { openMs: median(times), openCpuMs: median(cpus), scrollFrameMs: await scrolledFrames(page) };
}

/** Up and down by a screen a frame, as a hand on the wheel does at its fastest. */
async function scrolledFrames(page: Page): Promise<number> {
  const frames = await page.evaluate(
    (count) =>
      new Promise<number[]>((resolve) => {
        const box = document.querySelector(".tl");
        if (box === null) throw new Error("there are no steps");
        const times: number[] = [];
        let last = performance.now();
        const next = (): void => {
          const now = performance.now();
          times.push(now - last);
          last = now;
          if (times.length > count) resolve(times.slice(1));
          else {
            box.scrollTop += times.length < count / 2 ? -600 : 600;
            requestAnimationFrame(next);
          }
        };
        requestAnimationFrame(next);
      }),
    SCROLL_FRAMES,
  );
  return percentile(frames, 95);
}

async function measureStream(
  stage: Stage,
): Promise<Pick<PageFigures, "deltasPerSecond" | "deltaFrameMs" | "deltaCpuPercent" | "memoryMb">> {
  const { client } = stage.server;
  const texts = Array.from({ length: ANSWERS }, (_, answer) =>
    Array.from({ length: DELTAS_AN_ANSWER }, (__, piece) =>
      String(answer * DELTAS_AN_ANSWER + piece).padEnd(DELTA_CHARS),
    ).join(""),
  );
  let saidAt = 0;
  stage.plays(
    "stream",
    texts.map((text, at) => async () => {
      await wait(Math.max(0, saidAt + ANSWER_EVERY_MS - performance.now()));
      saidAt = performance.now();
      return at === texts.length - 1 ? { text } : { text, calls: [CALL] };
    }),
  );
  const { id } = await client.createThread({ workspace: stage.world.workspace });
  await using seat = await stage.sit({ at: `/threads/${id}` });
  const { page } = seat;
  const session = await watched(page);
  await page.evaluate(() => {
    const frames: number[] = [];
    let last = performance.now();
    const next = (): void => {
      const now = performance.now();
      frames.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
    Object.assign(globalThis, { drawnFrames: frames });
  });
  const [startedAt, before] = [performance.now(), await cpuMs(session)];
  const { id: turnId } = await client.startTurn(id, { input: "stream it [[stream]]" });
  // What is looked at whole, while it grows, is the newest.
  await page.keyboard.press("End");
  for (let status = "open"; status === "open"; { status } = await client.readTurn(id, turnId))
    await page.waitForTimeout(100);
  const ms = performance.now() - startedAt;
  const used = (await cpuMs(session)) - before;
  const frames = await page.evaluate(() => [...(Reflect.get(globalThis, "drawnFrames") as number[])]);
  await page.locator(".tl .st").last().click();
  const said = page.locator(".step-detail .md");
  await said.waitFor();
  // A page draws so much of one paragraph and says how much more there is.
  const [drawn = ""] = (await said.innerText()).split("…");
  const words = (text: string): string => text.split(/\s+/).join(" ").trim();
  if (drawn.length < DRAWN_CHARS || !words(texts.at(-1) ?? "").startsWith(words(drawn)))
    throw new Error("the page shows another text than the model said");
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const bytes = metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? Number.NaN;
  return {
    deltasPerSecond: (ANSWERS * DELTAS_AN_ANSWER) / (ms / 1000),
    deltaFrameMs: percentile(frames, 95),
    deltaCpuPercent: (100 * used) / ms,
    memoryMb: bytes / 1e6,
  };
}

/** A file of 20,000 lines, opened where it is folded. */
async function measureDiff(stage: Stage): Promise<number> {
  const { world } = stage;
  await using journal = await openJournal({ home: world.home, secrets: [] });
  const stream = newThreadId();
  const turnId = newTurnId();
  const diff = `@@ -0,0 +1,${DIFF_LINES} @@\n${Array.from({ length: DIFF_LINES }, (_, index) => `+line ${index} of a long file`).join("\n")}\n`;
  const item: Item = {
    type: "fileChange",
    id: newItemId(),
    callId: "call-1",
    status: "completed",
    changes: [{ path: "long.txt", kind: "add", diff }],
  };
  const [admitted, ...rest] = turnOf(0, world.workspace);
  const ofTurn = (event: EventBody): EventBody => ("turnId" in event ? { ...event, turnId } : event);
  await journal.append({
    stream,
    author: "system",
    events: [
      { type: "thread.created", v: 1, workspace: world.workspace, origin: "bench" },
      ...(admitted === undefined ? [] : [ofTurn(admitted)]),
      { type: "item.started", v: 1, turnId, item },
      { type: "item.completed", v: 1, turnId, item },
      ...rest.slice(-1).map(ofTurn),
    ],
  });
  await using seat = await stage.sit({ at: `/threads/${stream}` });
  const { page } = seat;
  const fold = page.locator(".file .fold");
  await fold.waitFor();
  const session = await watched(page);
  const before = await cpuMs(session);
  await page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        document.querySelector<HTMLElement>(".file .fold")?.click();
        const look = (): void => {
          if (document.querySelector(".diff .a") === null) requestAnimationFrame(look);
          else requestAnimationFrame(() => setTimeout(resolve));
        };
        look();
      }),
  );
  return (await cpuMs(session)) - before;
}

/** They wait for one that is paused, so that nothing carries them out. */
async function writeTasks(world: World): Promise<void> {
  await using journal = await openJournal({ home: world.home, secrets: [] });
  const tasks = openTasks({ journal }).as("user:owner");
  const add = (name: string, dependsOn: readonly string[]): ReturnType<typeof tasks.add> =>
    tasks.add({
      spec: TaskSpec.parse({ name, workspace: world.workspace, goal: "g", dependsOn }),
      source: { kind: "cli" },
    });
  const { id } = await add("first", []);
  await tasks.pause(id);
  for (let added = 0; added < TASKS; added += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => add(`load ${added + index}`, [id])));
}

async function measureTasksPage(stage: Stage): Promise<number> {
  await using seat = await stage.sit({ at: "/threads" });
  const session = await watched(seat.page);
  const before = await cpuMs(session);
  await openInPage(seat.page, "/tasks", "table tbody tr:nth-child(2)");
  return (await cpuMs(session)) - before;
}
