/**
 * Every page looks as it was accepted, dark and light, wide and on a phone: with recorded answers, so that nothing but the
 * page can change a picture.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, inject, test } from "vitest";
import { launch } from "./chromium.ts";
import { differenceOf } from "./compare.ts";
import { photographs } from "./photographs.ts";
import { plainPng, readPng } from "./png.ts";
import { pageOf, readRecording, REFERENCES, serveRecorded } from "./recorded.ts";
import { smallPng } from "./small-png.ts";

const MOST_PERCENT = 0.1;
/** Some forty pictures. */
const LIMIT_MS = 240_000;
/** What is there after the run: its own folder is removed. */
const DIFFERENCES = path.join(import.meta.dirname, "..", "..", "node_modules", ".cache", "pictures");
const ACCEPT = "npm run pictures -- --accept";
const unpacked = inject("chromium");
/** Another Chromium draws letters in its own way. */
const isOfTheTree = unpacked.env["FONTCONFIG_PATH"] !== undefined;

test.runIf(isOfTheTree)(
  "with the Chromium of the tree every page looks as it was accepted",
  { timeout: LIMIT_MS },
  async () => {
    rmSync(DIFFERENCES, { recursive: true, force: true });
    const recording = readRecording();
    await using recorded = await serveRecorded(recording, pageOf(inject("launcherWithPage")));
    const browser = await launch(unpacked);
    const seen: string[] = [];
    const changed: string[] = [];
    try {
      for await (const { name, png } of photographs(browser, recording, recorded)) {
        seen.push(`${name}.png`);
        const file = path.join(REFERENCES, `${name}.png`);
        if (!existsSync(file)) {
          changed.push(`${name} was never accepted: ${ACCEPT}`);
          continue;
        }
        const { percent, png: difference } = differenceOf(readFileSync(file), png);
        if (percent <= MOST_PERCENT) continue;
        mkdirSync(DIFFERENCES, { recursive: true });
        const at = path.join(DIFFERENCES, `${name}.png`);
        writeFileSync(at, difference);
        writeFileSync(path.join(DIFFERENCES, `${name}.now.png`), png);
        changed.push(`${name}: ${percent.toFixed(2)} % of its pixels differ, see ${at}; if that is meant: ${ACCEPT}`);
      }
    } finally {
      await browser.close();
    }
    expect(recorded.missing, "npm run pictures -- --record records what is missing").toEqual([]);
    expect(changed).toEqual([]);
    expect(readdirSync(REFERENCES).filter((name) => name.endsWith(".png") && !seen.includes(name))).toEqual([]);
  },
);

test("a picture that differs in more than a thousandth of its pixels is found, and where", () => {
  const [width, height] = [100, 100];
  const rgb = Buffer.alloc(width * height * 3, 40);
  const before = smallPng(plainPng({ width, height, rgb }));
  const now = Buffer.from(rgb);
  for (let pixel = 0; pixel < 11; pixel += 1) now.fill(240, pixel * 300, pixel * 300 + 3);
  const { percent, png } = differenceOf(before, plainPng({ width, height, rgb: now }));
  expect(percent).toBeCloseTo(0.11);
  expect([...readPng(png).rgb.subarray(0, 6)]).toEqual([255, 0, 0, 202, 202, 202]);
  expect(differenceOf(before, plainPng({ width, height, rgb })).percent).toBe(0);
});
