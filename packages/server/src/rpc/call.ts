/** What a handler gets, and what it gives back. */
import type { GoalTurns, Heddle, TurnQueue } from "@heddle/agent";
import type { CodexNotification, CodexParams, SupportedMethod } from "@heddle/dialects/codex-app-server";
import type { Connection } from "./connection.ts";
import type { Sessions } from "../codex/own/sessions.ts";
import type { FanOut } from "../followers/fan-out.ts";
import type { ThreadNews } from "../codex/thread-news.ts";
import type { RunningTurns } from "../turns/running-turns.ts";
import type { Host } from "../host/host.ts";
import type { LoadedThreads } from "../codex/loaded.ts";
import type { Reply, RequestId } from "./peer.ts";
import type { SettingsSource } from "../codex/settings.ts";

/** The server as handlers know it. */
export interface ServerContext {
  readonly heddle: Heddle;
  readonly settings: SettingsSource;
  readonly threads: LoadedThreads;
  /** Input that waits for its turn. */
  readonly queue: TurnQueue;
  readonly turns: RunningTurns;
  /** Of outside agents. */
  readonly sessions: Sessions;
  /** Work for the goals of threads. */
  readonly goals: GoalTurns;
  /** Problems of the configuration, sent to every client. */
  readonly configWarnings: readonly string[];
  /** Heddle's own folder. */
  readonly home: string;
  /** Where a thread works when its client names no folder. */
  readonly cwd: string;
  readonly version: string;
  /** Who started the server, where they say so; counts instead of the name of a client. */
  readonly originator?: string | undefined;
  readonly host: Host;
  /** For the operator, not for the client. */
  readonly log: (line: string) => void;
  readonly announce: (notification: CodexNotification) => void;
  readonly news: ThreadNews;
  readonly fanOut: () => Promise<FanOut>;
}

export interface Call {
  readonly server: ServerContext;
  readonly connection: Connection;
  /** As the client counts. */
  readonly requestId: RequestId;
}

export type Handler<Method extends SupportedMethod> = (params: CodexParams<Method>, call: Call) => Promise<Reply>;
