/** Shows what is stored about tasks, as it is stored: lines for people, or the events as JSON lines. */
import type { Journal } from "@heddle/journal";
import { isTaskEvent, type Item, type StoredEvent, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import { itemHead, itemTail } from "../print/items.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { GUTTER, isQuoted, label, marked, quoted } from "../print/screen.ts";
import type { Style } from "../print/style.ts";
import { taskLines } from "./task-lines.ts";

export interface ShowOptions {
  readonly journal: Journal;
  /** The position from which on it is shown. */
  readonly from: number;
  /** Only these, and what their schedules begin; undefined: all. */
  readonly chosen: readonly TaskRecord[] | undefined;
  readonly out: Output;
  readonly style: Style;
  readonly isJson: boolean;
  /** What the agent says and does too. */
  readonly hasItems: boolean;
}

export interface Show {
  /** Resolves when everything that is stored by now has been shown. */
  end(): Promise<void>;
}

export function showTasks(options: ShowOptions): Show {
  const { journal, from } = options;
  const tailing = new AbortController();
  const show = shower(options);
  let seen = from;
  let last = Number.POSITIVE_INFINITY;
  const following = (async () => {
    for await (const event of journal.tail({ after: from, signal: tailing.signal })) {
      await show(event);
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

function shower(options: ShowOptions): (event: StoredEvent) => Promise<void> {
  const { journal, chosen, out, style } = options;
  const names = new Map(chosen?.map(({ id, spec }) => [id, spec.name]));
  /** Threads of the tasks that are shown. */
  const threads = new Set<string>();

  const isShown = ({ stream, body }: StoredEvent<TaskEventBody>): boolean => {
    if (body.type === "task.created" && (chosen === undefined || names.has(body.parentId ?? "")))
      names.set(stream, body.spec.name);
    return chosen === undefined || names.has(stream);
  };
  const showTask = async (event: StoredEvent<TaskEventBody>): Promise<void> => {
    if (!isShown(event)) return;
    if (event.body.type === "task.prepared") threads.add(event.body.threadId);
    if (options.isJson) return out.write(toLine(event));
    const name = names.get(event.stream) ?? (await journal.tasks.get(event.stream))?.spec.name ?? event.stream;
    names.set(event.stream, name);
    const whose = style.dim(label(name));
    await out.write(
      taskLines(event, style)
        .map((line) => `${isQuoted(line) ? line : marked(`${whose} ${line}`)}\n`)
        .join(""),
    );
  };
  return async (event) => {
    const { body, stream } = event;
    if (isTaskEvent(body)) await showTask({ ...event, body });
    else if (options.hasItems && body.type === "item.completed" && threads.has(stream))
      await out.write(
        // Green is kept for what is verified.
        itemLines(body.item, { ...style, green: (text) => style.bold(text) })
          .map((line) => `${isQuoted(line) ? line : `${GUTTER}  ${line}`}\n`)
          .join(""),
      );
  };
}

function itemLines(item: Item, style: Style): readonly string[] {
  const head = itemHead(item, style);
  const text = item.type === "agentMessage" ? quoted(item.text) : [];
  return [...(head === undefined || head === "" ? [] : [head]), ...text, ...itemTail(item, style)].flatMap((line) =>
    line.split("\n"),
  );
}
