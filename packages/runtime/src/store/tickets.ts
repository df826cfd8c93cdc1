/** The queue of tickets of a store that machines share, in a schema beside that of the store. */
import type { TicketWriter } from "@heddle/journal";
import { HeddleError } from "@heddle/protocol";
import { openTicketQueue, type TicketQueue } from "@heddle/tasks";

export interface TicketsOptions {
  readonly log: (line: string) => void;
  /** It brings back what no worker took; short commands only send. */
  readonly isUpkeeper: boolean;
}

/** undefined: the store is the file of the home, and its own queue. */
export async function openTickets(
  address: string | undefined,
  options: TicketsOptions,
): Promise<TicketQueue | undefined> {
  if (address === undefined) return undefined;
  const url = URL.parse(address);
  // The address itself may hold a password.
  if (url === null)
    throw new HeddleError("config.invalid", "the address of a store is postgres://user@host/database?schema=name");
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  url.searchParams.delete("schema");
  return openTicketQueue({ url: url.href, schema: `${schema}_tickets`, ...options });
}

/** As in the address of the journal. */
const DEFAULT_SCHEMA = "heddle";

/** Opened by the first ticket: most short commands send none. */
export function ticketsWhenSent(
  address: string | undefined,
  log: (line: string) => void,
): (TicketWriter & AsyncDisposable) | undefined {
  if (address === undefined) return undefined;
  let opened: Promise<TicketQueue | undefined> | undefined;
  return {
    async write(changes, run) {
      opened ??= openTickets(address, { log, isUpkeeper: false });
      await (await opened)?.write(changes, run);
    },
    async [Symbol.asyncDispose]() {
      await (await opened)?.[Symbol.asyncDispose]();
    },
  };
}
