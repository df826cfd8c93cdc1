/** Shows what is stored about tasks, as it is stored: lines for people, or the events as JSON lines. */
import type { Journal } from "@heddle/journal";
import { isTaskEvent, visibleLine, type StoredEvent, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { ParsedArgs } from "../args.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { styleFor } from "../print/style.ts";
import { taskLines } from "./task-lines.ts";

export interface ShowOptions {
  readonly journal: Journal;
  /** The position from which on it is shown. */
  readonly from: number;
  /** Only these, and what their schedules begin; undefined: all. */
  readonly chosen: readonly TaskRecord[] | undefined;
  readonly args: ParsedArgs;
  readonly env: NodeJS.ProcessEnv;
}

export interface Show {
  /** Resolves when everything that is stored by now has been shown. */
  end(): Promise<void>;
}

export function showTasks({ journal, from, chosen, args, env }: ShowOptions): Show {
  const out = openOutput(process.stdout);
  const style = styleFor("auto", out.isTerminal, env);
  const tailing = new AbortController();
  const names = new Map(chosen?.map(({ id, spec }) => [id, spec.name]));
  let seen = from;
  let last = Number.POSITIVE_INFINITY;

  const isShown = ({ stream, body }: StoredEvent<TaskEventBody>): boolean => {
    if (body.type === "task.created" && (chosen === undefined || names.has(body.parentId ?? "")))
      names.set(stream, body.spec.name);
    return chosen === undefined || names.has(stream);
  };
  const print = async (event: StoredEvent<TaskEventBody>): Promise<void> => {
    if (!isShown(event)) return;
    if (args.has("json")) return out.write(toLine(event));
    const name = names.get(event.stream) ?? (await journal.tasks.get(event.stream))?.spec.name ?? event.stream;
    names.set(event.stream, name);
    const label = style.dim(`[${visibleLine(name)}]`);
    await out.write(
      taskLines(event, style)
        .map((line) => `${label} ${line}\n`)
        .join(""),
    );
  };
  const following = (async () => {
    for await (const event of journal.tail({ after: from, signal: tailing.signal })) {
      const { body } = event;
      if (isTaskEvent(body)) await print({ ...event, body });
      seen = event.position;
      if (seen >= last) return;
    }
  })();
  return {
    async end() {
      last = await journal.position();
      if (seen >= last) tailing.abort();
      await following;
    },
  };
}
