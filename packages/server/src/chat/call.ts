/** What a handler of the chat dialect gets. */
import type { Heddle, Serial, TurnQueue } from "@heddle/agent";
import type { Accounts } from "@heddle/models/accounts";
import type { ChatMethod, ChatParams, ChatResultOf } from "@heddle/dialects/chat";
import type { RunningTurns } from "../turns/running-turns.ts";
import type { SettingsResolver } from "../codex/settings.ts";
import type { HostSkills } from "../host/host.ts";
import type { ChatConnection } from "./connection.ts";
import type { ChatHub } from "./hub.ts";

export type SkillSwitch = Pick<HostSkills, "isEnabled" | "setEnabled">;

export interface ChatContext {
  readonly heddle: Heddle;
  readonly settings: SettingsResolver;
  readonly home: string;
  /** Where a chat works when its client names no folder. */
  readonly cwd: string;
  readonly version: string;
  readonly serverId: string;
  readonly hub: ChatHub;
  readonly queue: TurnQueue;
  readonly turns: RunningTurns;
  /** One message at a time in a chat, so that the same one twice is seen to be the same. */
  readonly sends: Serial;
  /** Opened when the first one asks. */
  readonly accounts: () => Promise<Accounts>;
  /** Absent: skills cannot be switched off here. */
  readonly skills?: SkillSwitch | undefined;
  readonly announce: (topic: string, params: Readonly<Record<string, unknown>>) => void;
  readonly log: (line: string) => void;
}

export interface ChatCall {
  readonly server: ChatContext;
  readonly connection: ChatConnection;
}

export interface ChatReply<Method extends ChatMethod> {
  readonly result: ChatResultOf<Method>;
  /** Called when the answer is on its way. */
  readonly after?: () => void;
}

export type ChatHandler<Method extends ChatMethod> = (
  params: ChatParams<Method>,
  call: ChatCall,
) => Promise<ChatReply<Method>>;
