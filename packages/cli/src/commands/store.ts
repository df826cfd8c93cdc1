/** `heddle store compact`: rewrites the record, so that it takes no more space than its content. */
import { stat, statfs } from "node:fs/promises";
import path from "node:path";
import { claimStore } from "@heddle/agent";
import { EXIT, HeddleError, visibleText } from "@heddle/protocol";
import { heddleHome, storeAddressOf } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";

export const storeCommand: Command = {
  usage: "store compact",
  about:
    "Rewrites heddle.db: the space of deleted threads is freed, and no fragment of what they said stays. Deleting a\n" +
    "thread does so by itself in small stores, and gives room back in slices in large ones; a large store of an earlier\n" +
    "Heddle needs this once. It takes as much free space as the record has content, needs serve and watch --ui stopped, and\n" +
    "a run that starts meanwhile waits for it, for 30 seconds at most.",
  subcommands: ["compact"],
  options: [{ name: "json", help: "One JSON object instead of text" }],
  examples: ["heddle store compact"],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [verb, ...more] = args.positionals;
  if (verb !== "compact" || more.length > 0) throw usage("write heddle store compact");
  if ((await storeAddressOf(env)) !== undefined)
    throw new HeddleError(
      "usage.invalid",
      "the record is on Postgres, which frees its space itself: VACUUM there does it now",
    );
  const home = heddleHome(env);
  const database = path.join(home, "heddle.db");
  const before = (await stat(database).catch(() => undefined))?.size;
  if (before === undefined) throw new HeddleError("usage.invalid", `there is no record in ${home}`);
  await using _claim = await claimStore(home, "heddle store compact");
  const { bavail, bsize } = await statfs(home);
  if (bavail * bsize < before) {
    const message = `${database} has ${megabytes(before)}, and ${megabytes(bavail * bsize)} are free; free some more first`;
    throw new HeddleError("store.full", message, { details: { path: database } });
  }
  if (process.stderr.isTTY) process.stderr.write(visibleText(`heddle: rewriting ${megabytes(before)} …\n`));
  {
    await using journal = await openRecord(env);
    await journal?.finishPurges();
    await journal?.compact();
  }
  const after = (await stat(database)).size;
  const out = openOutput(process.stdout);
  const text = `${database}: ${megabytes(before)} before, ${megabytes(after)} now\n`;
  await out.write(args.has("json") ? toLine({ path: database, bytesBefore: before, bytes: after }) : visibleText(text));
  return EXIT.ok;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
