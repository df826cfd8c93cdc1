/**
 * What happens to the envelope of a thread after a turn has begun in it. A hop is a checked change of envelope, made by
 * whoever the event's author is, and it ends with its scope: `call` with the call, `turn` with the turn, `thread` never.
 */
import { z } from "zod";
import { HopWish, Permissions } from "./approvals.ts";
import { Envelope, SandboxLevel } from "./envelope.ts";
import { Failure } from "./event-parts.ts";

export const HopScope = z.enum(["call", "turn", "thread"]);
export type HopScope = z.infer<typeof HopScope>;

const v1 = z.literal(1);

export const hopEvents = [
  /** Durable before anything runs in the wider envelope. */
  z.object({
    type: z.literal("hop.taken"),
    v: v1,
    turnId: z.string(),
    callId: z.string(),
    scope: HopScope,
    /** Hash of the envelope that was left. */
    from: z.string(),
    to: Envelope,
    toHash: z.string(),
    /** What holds the wall there. */
    sandboxLevel: SandboxLevel,
    /** What was added; absent: the wall was left behind. */
    permissions: Permissions.optional(),
  }),
  /** It was wanted and not made: above the ceiling, or nobody may be asked. The call is refused as an item too. */
  z.object({
    type: z.literal("hop.refused"),
    v: v1,
    turnId: z.string(),
    callId: z.string(),
    wish: HopWish,
    failure: Failure,
  }),
] as const;
