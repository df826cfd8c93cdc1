/**
 * A person who has joined a conversation of OpenCode that Heddle drives: what is typed there is on record as the owner's, once,
 * and the turn goes on until the person has left.
 */
import { z } from "zod";
import type { ProgramTurn } from "./conversation.ts";

/** On each text from here; what comes without it a person has typed. */
export const OURS = { heddle: true } as const;

const OfPerson = z.object({
  type: z.literal("text"),
  text: z.string().min(1),
  /** Added by the program, not by the person. */
  synthetic: z.literal(false).optional(),
  metadata: z.looseObject({ heddle: z.undefined() }).optional(),
});

export interface Joined {
  /** A message of a user: its words come after it. */
  message(id: string): void;
  has(messageId: string): boolean;
  /** True: it is what the person says, and is on record now. */
  said(messageId: string, part: unknown): Promise<boolean>;
  connections(count: number): Promise<void>;
  /** Heddle ends the turn, whoever is there. */
  stop(): void;
  readonly isThere: boolean;
}

export function createJoined({ said, warn }: Pick<ProgramTurn, "said" | "warn">): Joined {
  /** Of messages that came since somebody joined, by id: whether their words are on record. */
  const messages = new Map<string, boolean>();
  let live = 0;
  let hasBeen = false;
  let isStopped = false;
  return {
    message(id) {
      if (hasBeen && !messages.has(id)) messages.set(id, false);
    },
    has: (id) => messages.has(id),
    async said(id, raw) {
      const part = OfPerson.safeParse(raw).data;
      if (part === undefined || messages.get(id) !== false) return false;
      messages.set(id, true);
      await said(part.text);
      return true;
    },
    async connections(count) {
      live = count;
      if (count === 0 || hasBeen) return;
      hasBeen = true;
      await warn("agent.joined", "the owner has joined in the agent's own interface");
    },
    stop() {
      isStopped = true;
    },
    get isThere() {
      return live > 0 && !isStopped;
    },
  };
}
