/**
 * Announces commits to other processes, after them and on a connection of its own: inside a transaction the server would commit
 * one such transaction after the other. What is announced while one is under way goes together.
 */
import type { PostgresAddress } from "./address.ts";
import { connect, type Link } from "./driver.ts";
import { channelOf } from "./listener.ts";

export interface Notifier {
  /** Never rejects and is never waited for: readers look by themselves too. */
  announce(position: number): void;
  close(): Promise<void>;
}

export function createNotifier(address: PostgresAddress): Notifier {
  let link: Link | undefined;
  let newest = 0;
  let told = 0;
  let telling: Promise<void> | undefined;
  let isClosed = false;

  async function tell(): Promise<void> {
    while (told < newest && !isClosed) {
      const position = newest;
      try {
        if (link === undefined || link.isGone)
          link = await connect({ address, purpose: "notify", settings: { synchronous_commit: "off" } });
        await link.send({ sql: "SELECT pg_notify(?, ?)", values: [channelOf(address), String(position)] });
      } catch {
        // The next one tells of this too.
      }
      told = position;
    }
  }

  return {
    announce(position) {
      newest = Math.max(newest, position);
      telling ??= tell().finally(() => {
        telling = undefined;
      });
    },
    async close() {
      await telling;
      isClosed = true;
      await link?.close();
    },
  };
}
