/** A conversation of an agent program, adopted from the record that the program keeps itself; part of the union in events.ts. */
import { z } from "zod";
import { event } from "./event-parts.ts";
import { Item } from "../threads/items.ts";
import { Usage } from "../threads/model-output.ts";

export const importEvents = [
  /** One thing that was said or done there. The author of the event is who imported it, not who said it. */
  event("item.imported", {
    item: Item,
    said: z.enum(["user", "agent"]),
    /** By the clock of that program; absent: its record does not say. */
    saidAt: z.number().optional(),
    file: z.string(),
    /** Counted from 1; of a database, the message. */
    line: z.int(),
  }),
  /** Stored together with the items before it. What the file gets later is imported from `bytes` on, when it still begins so. */
  event("thread.imported", {
    /** The name of the runner of that program, and the program's name for the conversation. */
    from: z.string(),
    handle: z.string(),
    file: z.string(),
    /** What was read so far, and the SHA-256 of all of it. Of a database: of its messages as JSON lines. */
    bytes: z.int(),
    lines: z.int(),
    sha256: z.string(),
    items: z.int(),
    /** What its agent used, as its record says. It was paid there, and is in no ledger here. */
    usage: Usage,
    model: z.string().optional(),
    /** Lines without a meaning here, by kind. */
    unknown: z.record(z.string(), z.number()).optional(),
    /** Why the file has more than was read; absent: it had no more. */
    left: z.string().optional(),
  }),
] as const;
