/** What comes to a conversation of OpenCode while a person has it: the messages that were not there before. */
import { openCodeStore } from "./conversations.ts";
import type { AgentProgram } from "./find-program.ts";
import { hashedLines } from "./hashed-lines.ts";
import type { RecordLine, RecordMark } from "./own-record.ts";

/** Of one takeover; what a person and an agent say in a long day is a tenth of it. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** Never fails: a person may take the thread over all the same. */
export async function markOpenCode(program: AgentProgram, handle: string): Promise<RecordMark | undefined> {
  // A server that runs elsewhere keeps its conversations there.
  if (program.server !== undefined) return undefined;
  return await mark(program, handle).catch(() => undefined);
}

async function mark(program: AgentProgram, handle: string): Promise<RecordMark | undefined> {
  const store = await openCodeStore();
  const { conversations } = await store.list(program, { handle, limit: 2 });
  const conversation = conversations.find((one) => one.handle === handle);
  await using record = conversation && (await store.open(conversation));
  if (conversation === undefined || record === undefined) return undefined;
  let bytes = 0;
  for await (const { end } of hashedLines(record.bytes, MAX_LINE_BYTES)) bytes = end;
  return {
    file: conversation.file,
    bytes,
    async since() {
      const now = await store.open(conversation).catch(() => undefined);
      return now && linesAfter(now, bytes);
    },
  };
}

type Opened = NonNullable<Awaited<ReturnType<Awaited<ReturnType<typeof openCodeStore>>["open"]>>>;

async function* linesAfter(opened: Opened, bytes: number): AsyncGenerator<RecordLine, void, undefined> {
  await using record = opened;
  for await (const { text, end } of hashedLines(record.bytes, MAX_LINE_BYTES)) {
    if (end <= bytes) continue;
    if (end - bytes > MAX_BYTES) {
      yield { kind: "tooMuch" };
      return;
    }
    yield text === undefined ? { kind: "tooLong" } : { kind: "line", text };
  }
}
