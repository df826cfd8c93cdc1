/** What the owner says of messages between agents: whether they may send any, and whom they may wake. */
import type { ThreadRow } from "@heddle/journal";
import { OBSERVE } from "@heddle/tools";

/** The owner's, from the configuration. */
export interface MessageRules {
  /** Agents get the tools for messages. */
  readonly hasTools: boolean;
  /** A message may start a turn of an idle thread that says nothing else itself. */
  readonly wakes: boolean;
  /** The envelope that bounds such a turn, unless users gave all of its messages as commands. */
  readonly envelope: string;
}

export const NO_MESSAGE_RULES: MessageRules = { hasTools: false, wakes: false, envelope: OBSERVE };

/** Among the settings of a thread. */
export const WAKE_KEY = "wake_on_message";

export function wakesOf({ settings }: Pick<ThreadRow, "settings">, rules: MessageRules): boolean {
  const own = settings[WAKE_KEY];
  return typeof own === "boolean" ? own : rules.wakes;
}
