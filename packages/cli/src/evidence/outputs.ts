/** `heddle evidence show blob:…` and `collect`: whole outputs of commands that did not fit into the record. */
import { EXIT, HeddleError, OWNER, visibleLine, visibleText } from "@heddle/protocol";
import { blobPath, collectBlobs, readBlob, type CollectedBlob } from "@heddle/journal/blobs";
import { heddleHome, loadConfig } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { outputRule } from "@heddle/runtime/settings";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { writeBytes, type Output } from "../print/output.ts";

/** On a terminal its control characters are shown, not obeyed; anywhere else every byte is as it was. */
export async function showOutput(name: string, args: ParsedArgs, context: CommandContext): Promise<number> {
  if (args.has("json")) throw usage("an output is not JSON; leave out --json");
  const home = heddleHome(context.env);
  if (blobPath(home, name) === undefined) throw usage("write blob: and the 64 digits that the record names");
  const pieces = readBlob(home, name);
  const file = args.value("output");
  if (file !== undefined) {
    const { holdOutputFile } = await import("../output-file.ts");
    using held = await holdOutputFile(["-o", file], context, { roots: [], mode: 0o600 });
    await held.write(pieces);
    return EXIT.ok;
  }
  await writeBytes(process.stdout, process.stdout.isTTY ? shown(pieces) : pieces);
  return EXIT.ok;
}

async function* shown(pieces: AsyncIterable<Buffer>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  for await (const piece of pieces) yield visibleText(decoder.decode(piece, { stream: true }));
  yield visibleText(decoder.decode());
}

export async function collect(args: ParsedArgs, { env }: CommandContext, out: Output): Promise<number> {
  const { config } = await loadConfig(env);
  const isDryRun = args.has("dry-run");
  await using journal = await openRecord(env);
  if (journal === undefined)
    throw new HeddleError("evidence.not-found", `${heddleHome(env)} has no record yet; heddle exec makes one`);
  const found = await collectBlobs(journal, {
    home: heddleHome(env),
    rule: outputRule(config),
    by: OWNER,
    nowMs: Date.now(),
    isDryRun,
  });
  for (const blob of found) await out.write(args.has("json") ? toLine({ ...blob, isDryRun }) : line(blob));
  const bytes = found.reduce((sum, blob) => sum + blob.bytes, 0);
  const verb = isDryRun ? "would be removed" : "removed";
  if (!args.has("json")) await out.write(`${found.length} outputs ${verb}, ${bytes} bytes\n`);
  return EXIT.ok;
}

const WHY: Readonly<Record<CollectedBlob["why"], string>> = {
  unnamed: "nothing on record names it",
  unfinished: "the process that wrote it has ended",
  age: "it is older than outputs.max_days",
  size: "all outputs together are larger than outputs.max_mb",
};

function line({ sha256, bytes, why }: CollectedBlob): string {
  return visibleLine(`${sha256}  ${bytes} bytes  ${WHY[why]}`) + "\n";
}
