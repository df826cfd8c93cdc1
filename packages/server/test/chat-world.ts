/** A real server of the chat dialect on a unix socket: real store, real sandbox, a model server on loopback. */
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openHeddle, type Heddle } from "@heddle/agent";
import { resolveSettings } from "@heddle/agent/settings";
import type { ProviderConfig } from "@heddle/models";
import { openAccounts } from "@heddle/models/accounts";
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { defined, type TurnSettings } from "@heddle/protocol";
import type { SkillSwitch } from "../src/chat/call.ts";
import type { Host } from "../src/host/host.ts";
import {
  AppServer,
  LOCAL_OWNER,
  listenUnix,
  type ResolvedSettings,
  type Role,
  type SettingsRequest,
  type SettingsSource,
} from "../src/index.ts";
import { ChatClient, text } from "./chat-client.ts";

export interface ChatWorld extends AsyncDisposable {
  readonly root: string;
  readonly workspace: string;
  readonly heddle: Heddle;
  readonly model: ModelServer;
  readonly logged: readonly string[];
  client(role?: Role): Promise<ChatClient>;
  /** A client that listens to everything, and a chat. */
  chat(settings?: Readonly<Record<string, unknown>>): Promise<{ readonly client: ChatClient; readonly chatId: string }>;
}

export interface ChatWorldOptions extends ModelServerOptions {
  readonly settings?: Partial<TurnSettings>;
  /** Of an earlier world, to play a restart; it is not removed at the end. */
  readonly root?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** More providers to log in at. */
  readonly accounts?: readonly ProviderConfig[];
  readonly skills?: SkillSwitch;
  /** Titles and summaries; absent: none. */
  readonly background?: { readonly model?: string };
}

export async function openChatWorld(options: ChatWorldOptions = {}): Promise<ChatWorld> {
  const root = options.root ?? (await realpath(await mkdtemp(path.join(tmpdir(), "heddle-chat-"))));
  const [home, workspace] = [path.join(root, "home"), path.join(root, "workspace")];
  await mkdir(workspace, { recursive: true });
  await using ends = new AsyncDisposableStack();
  if (options.root === undefined) ends.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }));
  const model = ends.use(await startModelServer(options));
  const providers = [model.provider("openai-responses")];
  const env = { PATH: process.env["PATH"], HOME: root, ...options.env };
  const heddle = ends.use(
    await openHeddle({ home, providers, env, isUnattended: false, background: options.background }),
  );
  const accounts = ends.use(openAccounts({ home, env, configs: [...providers, ...(options.accounts ?? [])] }));
  const logged: string[] = [];
  const server = ends.use(
    new AppServer({
      heddle,
      settings: settingsSource(options.settings),
      home,
      cwd: workspace,
      version: "0.0.0-test",
      host: { env, accounts: () => Promise.resolve(accounts), skills: skillsOf(options.skills) },
      log: (line) => logged.push(line),
    }),
  );
  const sockets = new Map<Role, string>();
  for (const role of ["owner", "user", "viewer"] as const) {
    const socket = path.join(root, `${role}.sock`);
    const principal = role === "owner" ? LOCAL_OWNER : { name: role, role };
    ends.use(await listenUnix(socket, (channel) => void server.accept(channel, principal)));
    sockets.set(role, socket);
  }
  const clients: ChatClient[] = [];
  const client = async (role: Role = "owner"): Promise<ChatClient> => {
    const opened = await ChatClient.open(sockets.get(role) ?? "");
    clients.push(opened);
    return opened;
  };
  const moved = ends.move();
  return {
    root,
    workspace,
    heddle,
    model,
    logged,
    client,
    async chat(settings) {
      const opened = await client();
      await opened.call("events.subscribe", { topic: "chat.*" });
      const chatId = text(await opened.call("chat.create", settings === undefined ? {} : { settings }), "chat_id");
      return { client: opened, chatId };
    },
    async [Symbol.asyncDispose]() {
      for (const opened of clients) opened[Symbol.dispose]();
      await moved.disposeAsync();
    },
  };
}

/** A client of `codex app-server` that asked for experiments. */
export async function codexClient(world: ChatWorld): Promise<ChatClient> {
  const client = await world.client();
  await client.call("initialize", {
    clientInfo: { name: "probe", version: "0" },
    capabilities: { experimentalApi: true },
  });
  return client;
}

function skillsOf(given: SkillSwitch | undefined): Host["skills"] {
  return given && { ...given, extraRoots: () => [], setExtraRoots: () => undefined };
}

/** The resolver that every server has, over a configuration of defaults alone. */
function settingsSource(given: Partial<TurnSettings> = {}): SettingsSource {
  const values = {
    provider: "test",
    model: "gpt-5.5",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  } as const;
  const explain = async ({ stored, patch = {} }: SettingsRequest): Promise<ResolvedSettings> => {
    const asked = [{ source: "request" as const, values: patch }];
    const answer = resolveSettings({ config: [{ source: "default", values }], stored, asked });
    const { mode, effort, ...said } = { ...values, ...answer.values };
    const settings: TurnSettings = {
      provider: said.provider ?? values.provider,
      model: said.model ?? values.model,
      sandboxMode: said.sandboxMode ?? values.sandboxMode,
      ...defined({ envelope: said.envelope, ceiling: said.ceiling }),
      networkAccess: said.networkAccess ?? false,
      writableRoots: [...(said.writableRoots ?? [])],
      approvalPolicy: said.approvalPolicy ?? values.approvalPolicy,
      ...(mode === "plan" ? { mode } : {}),
      ...(effort === undefined ? {} : { effort }),
      ...given,
    };
    return { settings, sources: answer.sources, canSearch: false };
  };
  const resolve = async (request: SettingsRequest) => (await explain(request)).settings;
  return {
    explain,
    resolve,
    environment: () => ({}),
    patchOf: () => ({}),
    serversOf: async () => undefined,
    changesTurns: () => undefined,
    unusedOf: () => [],
  };
}
