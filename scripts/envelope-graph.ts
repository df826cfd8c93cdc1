/** Writes the drawing of the built-in envelopes and their edges into docs/use/envelopes.md. Usage: npm run envelopes */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drawEnvelopes } from "@heddle/tools/envelopes";
import { BUILT_IN_ENVELOPES } from "@heddle/tools";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
export const PAGE = join(ROOT, "docs", "use", "envelopes.md");
const BLOCK = /(?<=```mermaid\n)[^`]*(?=```)/;

export function withDrawing(page: string): string {
  if (!BLOCK.test(page)) throw new Error(`${PAGE} has no mermaid block`);
  return page.replace(BLOCK, drawEnvelopes([...BUILT_IN_ENVELOPES.values()]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, withDrawing(readFileSync(PAGE, "utf8")));
