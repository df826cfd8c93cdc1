/** `heddle threads import`: conversations that agent programs keep here, listed, and adopted as threads. */
import { importedAs, listConversations, type Conversation } from "@heddle/agent/conversations";
import { importConversation } from "@heddle/agent/import-conversation";
import { createRedactor, type Journal } from "@heddle/journal";
import { openHeddle } from "@heddle/agent";
import { EXIT, OWNER, visibleLine } from "@heddle/protocol";
import { heddleHome, loadConfig, storeAddressOf } from "@heddle/runtime/config";
import { knownSecrets } from "@heddle/runtime/known-secrets";
import { openRecord } from "@heddle/runtime/record";
import { usage, type ParsedArgs } from "../args.ts";
import type { CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { say } from "../print/screen.ts";
import { localTime } from "../print/style.ts";

export const IMPORT_FORM = "threads import ID, or threads import --list";

export async function importThreads(
  args: ParsedArgs,
  context: CommandContext,
  out: Output,
  limit: number,
): Promise<number> {
  const [, handle, ...more] = args.positionals;
  const isList = args.has("list");
  if (more.length > 0 || isList === (handle !== undefined)) throw usage(`write heddle ${IMPORT_FORM}`);
  if (handle === undefined) return list(args, context, { out, limit });
  if (args.has("limit")) throw usage("--limit belongs to heddle threads import --list");
  const { env, cwd: folder } = context;
  const { config } = await loadConfig(env);
  const { runners = {} } = config;
  const redactor = createRedactor(await knownSecrets(env));
  await using heddle = await openHeddle({
    home: heddleHome(env),
    store: await storeAddressOf(env),
    providers: [],
    env,
    redactor,
    isUnattended: true,
  });
  const { journal } = heddle;
  const from = args.value("from");
  const imported = await importConversation({ runners, env, journal, by: OWNER, from, handle, folder });
  if (args.has("json")) {
    await out.write(toLine(imported));
    return EXIT.ok;
  }
  const { threadId, items, left } = imported;
  const workspace = visibleLine((await journal.threads.get(threadId))?.workspace ?? "");
  const what = items === 0 ? "nothing new" : `${items} items`;
  await out.write(`${threadId} has ${what} of ${imported.from} ${imported.handle}, and works in ${workspace}\n`);
  if (left !== undefined) say(`not everything is imported: ${left}`);
  say(
    `heddle threads show ${threadId.slice(0, 13)} shows it; heddle exec resume ${threadId.slice(0, 13)} "…" continues it`,
  );
  return EXIT.ok;
}

interface Listing {
  readonly out: Output;
  readonly limit: number;
}

async function list(args: ParsedArgs, { env }: CommandContext, { out, limit }: Listing): Promise<number> {
  const { config } = await loadConfig(env);
  const programs = { runners: config.runners ?? {}, env };
  const { conversations, total } = await listConversations(programs, { from: args.value("from"), limit });
  await using journal: Journal | undefined = await openRecord(env);
  const known = journal === undefined ? () => undefined : await importedAs(journal);
  for (const one of conversations) {
    const threadId = known(one);
    const line = args.has("json") ? toLine(threadId === undefined ? one : { ...one, threadId }) : lineOf(one, threadId);
    await out.write(line);
  }
  if (args.has("json")) return EXIT.ok;
  if (total === 0) await out.write("no conversations of agent programs are kept here\n");
  if (total > conversations.length) await out.write(`… ${total - conversations.length} more: --limit ${total}\n`);
  return EXIT.ok;
}

function lineOf(one: Conversation, threadId: string | undefined): string {
  const { from, handle, updatedAt, folder, title, isArchived } = one;
  const about = [folder, title].filter((text) => text !== undefined).map(visibleLine);
  const marks = [
    ...(isArchived === true ? ["archived"] : []),
    ...(threadId === undefined ? [] : [`imported as ${threadId}`]),
  ];
  return `${from.padEnd(8)}  ${handle}  ${localTime(updatedAt)}  ${[...about, ...marks].join("  ")}\n`;
}
