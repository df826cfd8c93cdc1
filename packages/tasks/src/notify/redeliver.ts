/** Puts a notification back into its sink's queue, from the front of its patience. */
import type { Journal, NotificationRow } from "@heddle/journal";
import { HeddleError, type By } from "@heddle/protocol";
import { sinkStream } from "./sink.ts";

export async function redeliver(journal: Journal, { id, by }: { readonly id: string } & By): Promise<NotificationRow> {
  const found = await journal.notifications.get(id);
  if (found === undefined) {
    throw new HeddleError("usage.invalid", `there is no notification ${id}; see heddle notify dead`);
  }
  await journal.append({
    stream: sinkStream(found.sink),
    author: by,
    events: [{ type: "notification.redelivered", v: 1, notificationId: id }],
  });
  return (await journal.notifications.get(id)) ?? found;
}
