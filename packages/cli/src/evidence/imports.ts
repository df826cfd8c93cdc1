/** `heddle evidence import`, and the purge of what was imported. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { purgeImport } from "@heddle/agent";
import { createRedactor, openJournal } from "@heddle/journal";
import { importBundle, receiveBundle, type ImportReport } from "@heddle/journal/imports";
import { EXIT, HeddleError, OWNER, visibleLine } from "@heddle/protocol";
import { heddleHome, storeAddressOf } from "@heddle/runtime/config";
import { knownSecrets } from "@heddle/runtime/known-secrets";
import { openRecord } from "@heddle/runtime/record";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { publicKeyIn } from "../verify/bundle.ts";

/** More than any record that is passed on; a pipe may never end. */
const MAX_BUNDLE_BYTES = 16 * 1024 ** 3;

export async function importOne(file: string, args: ParsedArgs, context: CommandContext, out: Output): Promise<number> {
  const { env, cwd } = context;
  const home = heddleHome(env);
  const given = args.value("trust-key");
  const trust = given === undefined ? undefined : (publicKeyIn(path.resolve(cwd, given)) ?? given);
  const from = file === "-" ? process.stdin : await openBundle(path.resolve(cwd, file));
  const redactor = createRedactor(await knownSecrets(env));
  await using journal = await openJournal({ home, store: await storeAddressOf(env), redactor });
  await using bundle = await receiveBundle(home, { maxBytes: MAX_BUNDLE_BYTES });
  for await (const piece of from) await bundle.write(piece);
  const done = await importBundle(journal, () => bundle.lines(), { home, by: OWNER, trust });
  if (args.has("json")) await out.write(toLine(done));
  else await out.write(`${text(done)}\n`);
  return EXIT.ok;
}

async function openBundle(file: string): Promise<Readable> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) throw usage(`${visibleLine(file)} is not a file`);
  return createReadStream(file);
}

function text({ keyId, streams, imported, known, unread, outputs }: ImportReport): string {
  const more = [
    ...(known === 0 ? [] : [`${known} were here already`]),
    ...(unread === 0 ? [] : [`${unread} events are of a form that this version does not know`]),
    ...(outputs === 0 ? [] : [`${outputs} whole outputs are kept`]),
  ];
  const lines = [`${imported} entries imported, signed by key ${keyId}`, ...more, ...streams.map((one) => `  ${one}`)];
  return lines.map(visibleLine).join("\n");
}

export async function purgeOneImport(
  stream: string,
  args: ParsedArgs,
  { env }: CommandContext,
  out: Output,
): Promise<number> {
  await using journal = await openRecord(env);
  if (journal === undefined)
    throw new HeddleError("evidence.not-found", `${heddleHome(env)} has no record yet; heddle exec makes one`);
  await purgeImport(journal, { id: stream, by: OWNER });
  await journal.settled();
  await out.write(args.has("json") ? toLine({ stream, purged: true }) : `${visibleLine(stream)} is purged\n`);
  return EXIT.ok;
}
