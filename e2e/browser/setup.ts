/** What browser tests share in a run: `heddle` with the real page, and an unpacked Chromium. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { buildHeddle } from "../../scripts/test-program.ts";
import { unpackChromium, type UnpackedChromium } from "./chromium.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly chromium: UnpackedChromium;
    /** The launcher of a build with the page in it. */
    readonly launcherWithPage: string;
  }
}

const BUILD_PAGE = path.join(import.meta.dirname, "..", "..", "apps", "dashboard", "build.ts");

export async function setup(project: TestProject): Promise<() => void> {
  const root = mkdtempSync(path.join(tmpdir(), "heddle-page-"));
  project.provide("launcherWithPage", buildWithPage(root));
  project.provide("chromium", await unpackChromium());
  return () => rmSync(root, { recursive: true, force: true });
}

/** Returns the launcher. */
export function buildWithPage(root: string): string {
  const { launcher, page } = buildHeddle(root);
  // Vitest says that it is a test, which would make the page one for development.
  const env = { ...process.env, NODE_ENV: "production" };
  execFileSync(process.execPath, [BUILD_PAGE, "--out", page], { env, stdio: ["ignore", "ignore", "inherit"] });
  return launcher;
}
