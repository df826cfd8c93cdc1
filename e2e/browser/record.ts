/** Records what a real server answers the pages of a morning, for pictures that stay the same: see `recorded.ts`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import path from "node:path";
import { brotliCompressSync } from "node:zlib";
import type { Page } from "playwright-core";
import { openMorning } from "./morning.ts";
import { atRest, VIEWS } from "./photographs.ts";
import { isStream, RECORDING, REFERENCES, type Recording } from "./recorded.ts";
import type { Stage } from "./stage.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");

export async function record(stage: Stage): Promise<Recording> {
  const pages = await openMorning(stage);
  const { threadId = "" } = await stage.server.client.tasks.read(pages["run"]?.split("/").at(-1) ?? "");
  const places = { ...pages, board: "/tasks?view=board", thread: `/threads/${threadId}`, login: "/login" };
  const at = Date.now();
  const answers: Record<string, unknown> = {};
  for (const view of Object.values(VIEWS)) {
    await using seat = await stage.sit({ ...view, timezoneId: "UTC", reducedMotion: "reduce" });
    const { page } = seat;
    await page.clock.setFixedTime(at);
    const reading = listen(page, answers);
    for (const address of Object.values(places).filter((one) => one !== "/login")) {
      await page.goto(`${stage.server.url}${address}`);
      await atRest(page, 10);
    }
    await Promise.all(reading);
  }
  const recording: Recording = { at, places, answers };
  mkdirSync(REFERENCES, { recursive: true });
  writeFileSync(RECORDING, brotliCompressSync(withoutHost(JSON.stringify(recording), stage)));
  return recording;
}

/** The newest answer to each question. */
function listen(page: Page, answers: Record<string, unknown>): Promise<void>[] {
  const reading: Promise<void>[] = [];
  page.on("response", (response) => {
    const { pathname, search } = new URL(response.url());
    if (!pathname.startsWith("/api/") || isStream(pathname) || !response.ok()) return;
    const key = `${response.request().method()} ${pathname}${search}`;
    reading.push(
      response.json().then(
        (answer: unknown) => {
          answers[key] = answer;
        },
        // A page that was left takes its answers along; the next visit asks again.
        () => undefined,
      ),
    );
  });
  return reading;
}

/** Names of the machine that recorded it are no part of a picture, and have no place in the repository. */
function withoutHost(text: string, { world }: Stage): string {
  const names: readonly (readonly [string, string])[] = [
    [world.root, "/home/ada"],
    [process.execPath, "/usr/bin/node"],
    [ROOT, "/opt/heddle"],
    [tmpdir(), "/tmp"],
    [hostname(), "loom"],
    [userInfo().homedir, "/home/ada"],
  ];
  const of = (name: string): string => JSON.stringify(name).slice(1, -1);
  return names.reduce(
    (before, [name, instead]) => (name.length < 3 ? before : before.replaceAll(of(name), instead)),
    text,
  );
}
