/** Notifications as files in a folder, each written atomically under its own name; the oldest are removed. */
import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { holdFolder, realPathOf, type HeldFolder } from "@heddle/tools/held-folder";
import type { NotificationName } from "../names.ts";
import type { Outgoing, SendResult, Sink } from "../sink.ts";

export interface FileSinkOptions {
  readonly name: string;
  readonly folder: string;
  readonly events: ReadonlySet<NotificationName>;
  readonly prefix?: string;
  readonly keep?: number;
}

const DEFAULT_PREFIX = "heddle";
const DEFAULT_KEEP = 1_000;
/** Cleaning costs more than a few files too many. */
const WRITES_BETWEEN_CLEANING = 50;

export function fileSink({
  name,
  folder,
  events,
  prefix = DEFAULT_PREFIX,
  keep = DEFAULT_KEEP,
}: FileSinkOptions): Sink {
  let writes = 0;
  // The path as it leads now; a link that appears in it later is not followed.
  const real = realPathOf(path.resolve(folder));
  return {
    name,
    kind: "file",
    target: folder,
    events,
    secrets: [],
    async send(notification): Promise<SendResult> {
      const file = fileName(prefix, notification);
      using held = holdFolder(real, { makes: true, refusesLinks: true });
      held.write(file, `${JSON.stringify(notification.payload, undefined, 2)}\n`);
      if (writes % Math.min(WRITES_BETWEEN_CLEANING, keep) === 0) clean(held, prefix, keep);
      writes += 1;
      return { kind: "delivered", message: file };
    },
  };
}

/** The time of the event and the id, so that a second try writes the same file. */
function fileName(prefix: string, { id, event, payload }: Outgoing): string {
  const seconds = payload["timestamp"];
  const at = new Date(typeof seconds === "number" ? Math.round(seconds * 1000) : 0).toISOString();
  const stamp = at.slice(0, 19).replaceAll(/[-:]/g, "");
  return `${prefix}-${event}-${stamp}-${at.slice(20, 23)}-${id}.json`;
}

function clean(folder: HeldFolder, prefix: string, keep: number): void {
  const own = readdirSync(folder.at(".")).flatMap((name) => {
    const stamp = name.startsWith(`${prefix}-`) ? STAMPED.exec(name)?.[1] : undefined;
    return stamp === undefined ? [] : [{ name, stamp }];
  });
  const oldestFirst = own.toSorted((a, b) => (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : 0));
  for (const { name } of oldestFirst.slice(0, Math.max(0, own.length - keep))) rmSync(folder.at(name), { force: true });
}

/** Time, milliseconds and id sort in the order of events. */
const STAMPED = /-(\d{8}T\d{6}-\d{3}-ntf_[0-9a-f-]+)\.json$/;
