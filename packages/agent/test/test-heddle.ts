/** A real Heddle on a temporary home and workspace, with a scripted model and the host's real sandbox. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProviderConfig } from "@heddle/models";
import {
  McpServerConfig,
  type EventOf,
  type EventType,
  type McpServerInput,
  type StoredEvent,
  type TurnSettings,
} from "@heddle/protocol";
import { openHeddle, type Heddle, type HeddleOptions, type TurnHandle } from "../src/index.ts";

type Script = NonNullable<ProviderConfig["script"]>;

export interface TestHeddleOptions {
  readonly script?: Script;
  readonly settings?: Partial<TurnSettings>;
  readonly isUnattended?: boolean;
  readonly providers?: readonly ProviderConfig[];
  readonly hooks?: HeddleOptions["hooks"];
  readonly runner?: HeddleOptions["runner"];
  readonly runners?: HeddleOptions["runners"];
  readonly slowStartMs?: number;
  readonly sweepEveryMs?: number;
  readonly leaseMs?: number;
  readonly childThreads?: HeddleOptions["childThreads"];
  readonly log?: HeddleOptions["log"];
  readonly mcpServers?: readonly McpServerInput[];
  readonly sandboxBackend?: HeddleOptions["sandboxBackend"];
  readonly idleSandboxes?: HeddleOptions["idleSandboxes"];
  readonly sandboxLimits?: HeddleOptions["sandboxLimits"];
  readonly hasEvidenceTools?: boolean;
  readonly messages?: HeddleOptions["messages"];
  /** Besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Shared with an earlier one, to play a second process or a restart. */
  readonly folder?: string;
}

export interface TestHeddle extends AsyncDisposable {
  readonly heddle: Heddle;
  readonly folder: string;
  readonly home: string;
  readonly workspace: string;
  readonly settings: TurnSettings;
  start(text: string, options?: { readonly thread?: string; readonly clientId?: string }): Promise<TurnHandle>;
  /** The stored events of a thread, oldest first. */
  events(threadId: string): Promise<readonly StoredEvent[]>;
  /** Waits for the first event of a type in a thread, stored already or not. */
  next<T extends EventType>(threadId: string, type: T): Promise<EventOf<T>>;
}

/** No test waits longer than this for an event that should come. */
const DEADLINE_MS = 60_000;

export async function openTestHeddle(options: TestHeddleOptions = {}): Promise<TestHeddle> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "heddle-agent-")));
  const home = join(folder, "home");
  const workspace = join(folder, "workspace");
  await mkdir(workspace, { recursive: true });
  const heddleOptions: HeddleOptions = {
    home,
    providers: options.providers ?? [{ id: "scripted", family: "openai", script: options.script ?? [] }],
    env: { PATH: process.env["PATH"], ...options.env },
    mcpServers: (options.mcpServers ?? []).map((server) => McpServerConfig.parse(server)),
    isUnattended: options.isUnattended ?? true,
    idleSandboxes: options.idleSandboxes,
    ...(options.sandboxLimits === undefined ? {} : { sandboxLimits: options.sandboxLimits }),
    slowStartMs: options.slowStartMs,
    runner: options.runner,
    runners: options.runners,
    hasEvidenceTools: options.hasEvidenceTools,
    ...(options.sandboxBackend === undefined ? {} : { sandboxBackend: options.sandboxBackend }),
    messages: options.messages,
    ...(options.hooks === undefined ? {} : { hooks: options.hooks }),
    sweepEveryMs: options.sweepEveryMs,
    leaseMs: options.leaseMs,
    childThreads: options.childThreads,
    log: options.log,
  };
  const heddle = await openHeddle(heddleOptions);
  const settings: TurnSettings = {
    provider: "scripted",
    model: "scripted",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
    ...options.settings,
  };
  return {
    heddle,
    folder,
    home,
    workspace,
    settings,
    start: (text, { thread, clientId } = {}) =>
      heddle.as("user:owner").startTurn({
        thread: thread ?? { workspace, origin: "test" },
        input: [{ type: "text", text }],
        settings,
        ...(clientId === undefined ? {} : { clientId }),
      }),
    events: (threadId) => heddle.journal.read({ stream: threadId, after: 0, limit: 10_000 }),
    next: (threadId, type) => nextEvent(heddle, threadId, type),
    async [Symbol.asyncDispose]() {
      await heddle[Symbol.asyncDispose]();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

async function nextEvent<T extends EventType>(heddle: Heddle, threadId: string, type: T): Promise<EventOf<T>> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  for await (const { body } of heddle.journal.tail({ stream: threadId, after: 0, signal })) {
    if (isOf(body, type)) return body;
  }
  throw new Error(`no ${type} within ${DEADLINE_MS} ms`);
}

function isOf<T extends EventType>(body: StoredEvent["body"], type: T): body is EventOf<T> {
  return body.type === type;
}
