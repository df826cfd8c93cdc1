/** Where the built page of the dashboard lies: beside the bundle, from source too. */
import { fileURLToPath } from "node:url";

export function pageFolder(): string {
  return fileURLToPath(new URL("../dist/dashboard/", import.meta.url));
}
