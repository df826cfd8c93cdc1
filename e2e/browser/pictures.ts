/**
 * Takes the pictures of the dashboard that the documents show: a real `heddle serve`, a scripted model, the Chromium of the
 * tree. It writes docs/use/pictures/ anew, and refuses to when a page complains or the pictures are too large.
 * `--accept` takes those that the tests compare instead, e2e/browser/pictures/, from the answers that are recorded there;
 * `--record` records these answers anew before that, which changes every picture.
 * Usage: npm run pictures [-- --accept | --record]
 */
import { constants, copyFileSync, globSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { launch, unpackChromium, type UnpackedChromium } from "./chromium.ts";
import { atRest, photographs, THEMES } from "./photographs.ts";
import { pageOf, readRecording, REFERENCES, serveRecorded } from "./recorded.ts";
import { buildWithPage } from "./setup.ts";
import { smallPng } from "./small-png.ts";

const FOLDER = path.join(import.meta.dirname, "..", "..", "docs", "use", "pictures");
/** They stay in the history of the repository for ever. */
const MAX_BYTES = 1_500_000;
const MAX_REFERENCE_BYTES = 4_000_000;
const WIDE = { width: 1440, height: 900 } as const;
const PHONE = { width: 390, height: 844 } as const;
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
  const { accept, record } = parseArgs({
    options: { accept: { type: "boolean" }, record: { type: "boolean" } },
  }).values;
  const unpacked = await unpackChromium();
  if (record === true) await recordAnswers(unpacked);
  if (accept === true || record === true) await acceptPictures(unpacked);
  else await takePictures(unpacked);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function recordAnswers(unpacked: UnpackedChromium): Promise<void> {
  const { openStage } = await import("./stage.ts");
  const { record } = await import("./record.ts");
  await using stage = await openStage({ unpacked });
  await record(stage);
}

async function acceptPictures(unpacked: UnpackedChromium): Promise<void> {
  const recording = readRecording();
  await using recorded = await serveRecorded(recording, pageOf(process.env["HEDDLE_E2E_LAUNCHER"] ?? ""));
  const browser = await launch(unpacked);
  try {
    for (const old of globSync("*.png", { cwd: REFERENCES })) rmSync(path.join(REFERENCES, old));
    for await (const { name, png } of photographs(browser, recording, recorded))
      writeFileSync(path.join(REFERENCES, `${name}.png`), smallPng(png));
  } finally {
    await browser.close();
  }
  if (recorded.missing.length > 0)
    throw new Error(`not recorded: ${recorded.missing.join(", ")}\nnpm run pictures -- --record records it`);
  report(REFERENCES, MAX_REFERENCE_BYTES);
}

async function takePictures(unpacked: UnpackedChromium): Promise<void> {
  const { openStage } = await import("./stage.ts");
  const { openMorning } = await import("./morning.ts");
  await using stage = await openStage({ unpacked });
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
      await atRest(seat.page, 8);
      for (const theme of viewport === PHONE ? (["dark"] as const) : THEMES) {
        await seat.page.emulateMedia({ colorScheme: theme });
        const file = `${name}-${viewport === PHONE ? "phone" : theme}.png`;
        writeFileSync(path.join(FOLDER, file), smallPng(await seat.page.screenshot()));
      }
    }
  }
  report(FOLDER, MAX_BYTES);
}

function report(folder: string, maxBytes: number): void {
  const sizes = globSync("*.png", { cwd: folder })
    .toSorted()
    .map((file) => ({ file, bytes: statSync(path.join(folder, file)).size }));
  for (const { file, bytes } of sizes) figure(`${file}  ${Math.round(bytes / 1000)} kB`);
  const bytes = sizes.reduce((sum, one) => sum + one.bytes, 0);
  figure(`${sizes.length} pictures, ${Math.round(bytes / 1000)} kB, in ${path.relative(process.cwd(), folder)}`);
  if (bytes > maxBytes) throw new Error(`the limit is ${maxBytes / 1000} kB: leave some out`);
}

function figure(text: string): void {
  process.stdout.write(`${text}\n`);
}
