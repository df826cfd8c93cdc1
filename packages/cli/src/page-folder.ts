/** Where the built page of the dashboard lies, and what draws a run as a file: beside the bundle, from source too. */
import { fileURLToPath } from "node:url";

export function pageFolder(): string {
  return fileURLToPath(new URL("../dist/dashboard/", import.meta.url));
}

export function runPageFile(): string {
  return fileURLToPath(new URL("../dist/run-page.cjs", import.meta.url));
}
