/** `heddle app-server generate-ts` and `generate-json-schema`: types of what this server takes and says. */
import path from "node:path";
import { EXIT } from "@heddle/protocol";
import { holdFolder } from "@heddle/tools/held-folder";
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
  using folder = holdFolder(path.resolve(cwd, out), { makes: true });
  folder.refuseLinksOf([cwd]);
  for (const [name, content] of make({ isExperimental: args.has("experimental") })) {
    const [file = name, ...above] = name.split("/").toReversed();
    using within = new DisposableStack();
    const place = above.toReversed().reduce((at, part) => within.use(at.below(part)), folder);
    place.write(file, content, { mode: 0o666 });
  }
  return EXIT.ok;
}
