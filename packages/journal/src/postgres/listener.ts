/**
 * Wakes followers when there is something new in Postgres. Commits of this process wake them at once; those of others are
 * announced on a channel. An announcement only says when to look: what is looked at every half second, while someone waits,
 * shows what a lost one would have said.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createFollowers, type Wake } from "../record/followers.ts";
import { integer, optionalInteger, text } from "../record/rows.ts";
import { all, get, type Ask, type Asking } from "../sql/ask.ts";
import type { PostgresAddress } from "./address.ts";
import { connect, type Link } from "./driver.ts";

const LOOK_EVERY_MS = 500;
const AGAIN_MS = 250;
/** Streams that are told apart; with more of them everybody looks. */
const MAX_STREAMS = 256;

export interface Listener extends Wake {
  /** What was read before is not what the store holds now. */
  readonly isReplaced: boolean;
  /** Committed by this process: nobody has to look. */
  committed(first: number, last: number): void;
}

export function channelOf({ schema }: PostgresAddress): string {
  return `heddle_${schema}`;
}

export interface ListenerOptions {
  readonly address: PostgresAddress;
  readonly ask: Ask;
  readonly incarnation: number;
  /** Events that were here are not any more. */
  readonly onLoss: () => void;
}

export function createListener({ address, ask, incarnation, onLoss }: ListenerOptions): Listener {
  let isReplaced = false;
  let seen: number | undefined;
  let link: Link | undefined;
  let listening: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isAsked = false;
  const closing = new AbortController();

  const followers = createFollowers({
    begins() {
      listening ??= listen();
    },
    waits() {
      timer = setInterval(look, LOOK_EVERY_MS);
    },
    waitsNoMore: () => clearInterval(timer),
  });

  /** Until it is closed. What came while there was no connection is looked for by everybody. */
  async function listen(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        link = await connect({ address, purpose: "listen" });
        await link.listen(channelOf(address), look);
        if (closing.signal.aborted) break;
        followers.all();
        await link.gone;
      } catch {
        // The server is away: followers look by themselves meanwhile.
      }
      await delay(AGAIN_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
    await link?.close();
  }

  function look(): void {
    isAsked = true;
    looking ??= lookNow().finally(() => {
      looking = undefined;
      if (isAsked && !followers.isClosed) look();
    });
  }

  async function lookNow(): Promise<void> {
    isAsked = false;
    try {
      const from = seen;
      const news = await ask(() => newsAfter(from));
      if (news.last < (from ?? 0)) onLoss();
      isReplaced ||= news.incarnation !== incarnation || news.last < (from ?? 0);
      seen = news.last;
      if (news.streams === undefined) followers.all();
      else for (const stream of news.streams) followers.now(stream);
    } catch {
      // Whoever reads is told what is wrong.
      followers.all();
    }
  }

  return {
    get isReplaced() {
      return isReplaced;
    },
    follow: (stream) => followers.follow(stream),
    now: (stream) => followers.now(stream),
    committed(first, last) {
      if (seen === first - 1) seen = last;
    },
    close() {
      closing.abort();
      clearInterval(timer);
      followers.close();
      link?.drop();
    },
  };
}

interface News {
  readonly incarnation: number;
  readonly last: number;
  /** undefined: any. */
  readonly streams: readonly string[] | undefined;
}

const HERE = "SELECT incarnation, (SELECT max(position) FROM events) AS last FROM journal_state";
const CHANGED = "SELECT stream, max(position) AS last FROM events WHERE position > ? GROUP BY stream";

function* newsAfter(seen: number | undefined): Asking<News> {
  // First: what is committed between the two is found again.
  const here = yield* get(HERE);
  const incarnation = integer(here, "incarnation");
  const last = (here && optionalInteger(here, "last")) ?? 0;
  if (seen === undefined || last <= seen) return { incarnation, last, streams: seen === last ? [] : undefined };
  const rows = yield* all(CHANGED, seen);
  return { incarnation, last, streams: rows.length > MAX_STREAMS ? undefined : rows.map((row) => text(row, "stream")) };
}
