/**
 * Takes the pictures of the dashboard that the documents show: a real `heddle serve`, a scripted model, the Chromium of the
 * tree. It writes docs/use/pictures/ anew, and refuses to when a page complains or the pictures are too large.
 * Usage: npm run pictures
 */
import { constants, copyFileSync, globSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Page } from "playwright-core";
import { unpackChromium } from "./chromium.ts";
import { settled } from "./probes.ts";
import { buildWithPage } from "./setup.ts";
import { smallPng } from "./small-png.ts";

const FOLDER = path.join(import.meta.dirname, "..", "..", "docs", "use", "pictures");
/** They stay in the history of the repository for ever. */
const MAX_BYTES = 1_500_000;
const WIDE = { width: 1440, height: 900 } as const;
const PHONE = { width: 390, height: 844 } as const;
const THEMES = ["dark", "light"] as const;
const ON_A_PHONE = ["now", "run", "tasks"];

const scratch = mkdtempSync(path.join(tmpdir(), "heddle-pictures-"));
process.env["TMPDIR"] = scratch;
try {
  // Before e2e/world.ts is loaded: it reads which launcher to start.
  process.env["HEDDLE_E2E_LAUNCHER"] ??= buildWithPage(path.join(scratch, "built"));
  // The doctor names the program of Node, and the folder of this checkout does not belong in a picture.
  const node = path.join(scratch, "node");
  copyFileSync(process.execPath, node, constants.COPYFILE_FICLONE);
  process.execPath = node;
  await takePictures();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function takePictures(): Promise<void> {
  const { openStage } = await import("./stage.ts");
  const { openMorning } = await import("./morning.ts");
  await using stage = await openStage({ unpacked: await unpackChromium() });
  const pages = await openMorning(stage);
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const [viewport, names] of [
    [WIDE, Object.keys(pages)],
    [PHONE, ON_A_PHONE],
  ] as const) {
    await using seat = await stage.sit({ viewport, reducedMotion: "reduce" });
    for (const name of names) {
      await seat.page.goto(`${stage.server.url}${pages[name] ?? ""}`);
      await drawn(seat.page);
      for (const theme of viewport === PHONE ? (["dark"] as const) : THEMES) {
        await seat.page.emulateMedia({ colorScheme: theme });
        const file = `${name}-${viewport === PHONE ? "phone" : theme}.png`;
        writeFileSync(path.join(FOLDER, file), smallPng(await seat.page.screenshot()));
      }
    }
  }
  report();
}

/** With all that is asked for after the first paint: what was said of a task, its changes, what the doctor finds. */
async function drawn(page: Page): Promise<void> {
  await settled(page);
  await page.locator("#main h1").first().waitFor();
  // Streams of events stay open, so the network is never idle: the page has come to rest when its text stays the same.
  let before = "";
  let same = 0;
  for (let look = 0; look < 100 && same < 8; look += 1) {
    const text = await page.locator("#main").innerText();
    same = text === before ? same + 1 : 0;
    before = text;
    await page.waitForTimeout(100);
  }
  await settled(page);
}

function report(): void {
  const sizes = globSync("*.png", { cwd: FOLDER })
    .toSorted()
    .map((file) => ({ file, bytes: statSync(path.join(FOLDER, file)).size }));
  for (const { file, bytes } of sizes) figure(`${file}  ${Math.round(bytes / 1000)} kB`);
  const bytes = sizes.reduce((sum, one) => sum + one.bytes, 0);
  figure(`${sizes.length} pictures, ${Math.round(bytes / 1000)} kB, in docs/use/pictures/`);
  if (bytes > MAX_BYTES) throw new Error(`the limit is ${MAX_BYTES / 1000} kB: leave some out`);
}

function figure(text: string): void {
  process.stdout.write(`${text}\n`);
}
