/** `heddle app-server generate-ts` and `generate-json-schema`: types of what this server takes and says. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";

export const GENERATORS = ["generate-ts", "generate-json-schema"] as const;
export type Generator = (typeof GENERATORS)[number];

export function isGenerator(word: string | undefined): word is Generator {
  return (GENERATORS as readonly (string | undefined)[]).includes(word);
}

export async function generate(which: Generator, args: ParsedArgs, cwd: string): Promise<number> {
  const out = args.value("out");
  if (out === undefined) throw usage(`${which} needs --out DIR`);
  const { jsonFiles, tsFiles } = await import("@heddle/server/describe");
  const make = which === "generate-ts" ? tsFiles : jsonFiles;
  const folder = path.resolve(cwd, out);
  for (const [name, content] of make({ isExperimental: args.has("experimental") })) {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
  return EXIT.ok;
}
