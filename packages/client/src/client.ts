/** The resources of a server, one method each. Every call can be aborted; none is repeated by itself. */
import { AccessClient } from "./access.ts";
import { AgentClient } from "./agents.ts";
import { HeddleApiError } from "./api-error.ts";
import { EvidenceClient } from "./evidence.ts";
import { follow, type FollowOptions } from "./follow.ts";
import { Http, type Call, type ClientOptions, type Query } from "./http.ts";
import { NotificationClient } from "./notifications.ts";
import { TaskClient } from "./tasks.ts";
import type {
  Accepted,
  AccountsAnswer,
  Answer,
  ApprovalList,
  ConfigAnswer,
  ConversationList,
  ConversationsQuery,
  CreateThread,
  Decision,
  DoctorAnswer,
  EndedProcess,
  EnvelopeDetail,
  EnvelopeList,
  FolderList,
  Followed,
  ForkThread,
  HopAnswer,
  HopThread,
  ImportConversation,
  ImportedConversation,
  ItemPage,
  ModelsAnswer,
  ProcessList,
  SandboxAnswer,
  ServerAnswer,
  StartTurn,
  StateAnswer,
  Thread,
  ThreadDetail,
  ThreadDiff,
  ThreadPage,
  ThreadsQuery,
  Turn,
  TurnPage,
  UsagePage,
  UsageQuery,
  WorkspaceList,
  WrittenInput,
} from "./types.ts";

export type Page = Query & { readonly cursor?: string; readonly limit?: number };

/** How a turn ended. */
export interface TurnResult {
  readonly turn: Turn;
  /** The last thing the agent said in full. */
  readonly message: string | undefined;
}

export class HeddleClient {
  readonly tasks: TaskClient;
  readonly notifications: NotificationClient;
  readonly evidence: EvidenceClient;
  readonly agents: AgentClient;
  readonly access: AccessClient;
  readonly #http: Http;

  constructor(options: ClientOptions) {
    this.#http = new Http(options);
    this.tasks = new TaskClient(this.#http);
    this.notifications = new NotificationClient(this.#http);
    this.evidence = new EvidenceClient(this.#http);
    this.agents = new AgentClient(this.#http);
    this.access = new AccessClient(this.#http);
  }

  server(call?: Call): Promise<ServerAnswer> {
    return this.#http.json("GET", "api/server", call);
  }

  models(query: { readonly provider?: string } = {}, call?: Call): Promise<ModelsAnswer> {
    return this.#http.json("GET", "api/models", { ...call, query });
  }

  accounts(call?: Call): Promise<AccountsAnswer> {
    return this.#http.json("GET", "api/accounts", call);
  }

  sandbox(call?: Call): Promise<SandboxAnswer> {
    return this.#http.json("GET", "api/sandbox", call);
  }

  /** Those that a thread can be in, and the ways between them; with a project's, where its folder is named. */
  envelopes(query: { readonly workspace?: string } = {}, call?: Call): Promise<EnvelopeList> {
    return this.#http.json("GET", "api/envelopes", { ...call, query });
  }

  envelope(name: string, query: { readonly workspace?: string } = {}, call?: Call): Promise<EnvelopeDetail> {
    return this.#http.json("GET", `api/envelopes/${encodeURIComponent(name)}`, { ...call, query });
  }

  /** What this machine lacks, and what fixes it. */
  doctor(call?: Call): Promise<DoctorAnswer> {
    return this.#http.json("GET", "api/doctor", call);
  }

  config(call?: Call): Promise<ConfigAnswer> {
    return this.#http.json("GET", "api/config", call);
  }

  /** What a page shows first: counts, the newest tasks, stalls, questions, what models took. */
  state(call?: Call): Promise<StateAnswer> {
    return this.#http.json("GET", "api/state", call);
  }

  usage({ by, ...query }: UsageQuery = {}, call?: Call): Promise<UsagePage> {
    return this.#http.json("GET", "api/usage", { ...call, query: { ...query, by: by?.join(",") } });
  }

  recentWorkspaces(call?: Call): Promise<WorkspaceList> {
    return this.#http.json("GET", "api/recent-workspaces", call);
  }

  /** The folders in a folder of the server; in its own when none is named. */
  browse(path?: string, call?: Call): Promise<FolderList> {
    return this.#http.json("GET", "api/browse", { ...call, query: { path } });
  }

  listThreads(query: ThreadsQuery = {}, call?: Call): Promise<ThreadPage> {
    return this.#http.json("GET", "api/threads", { ...call, query });
  }

  /** Those that agent programs keep on the machine of the server. */
  listConversations(query: ConversationsQuery = {}, call?: Call): Promise<ConversationList> {
    return this.#http.json("GET", "api/conversations", { ...call, query });
  }

  importConversation(conversation: ImportConversation, call?: Call): Promise<ImportedConversation> {
    return this.#http.json("POST", "api/conversations/import", { ...call, body: conversation });
  }

  createThread(thread: CreateThread = {}, call?: Call): Promise<ThreadDetail> {
    return this.#http.json("POST", "api/threads", { ...call, body: thread });
  }

  readThread(threadId: string, call?: Call): Promise<ThreadDetail> {
    return this.#http.json("GET", thread(threadId), call);
  }

  nameThread(threadId: string, name: string, call?: Call): Promise<Thread> {
    return this.#http.json("PATCH", thread(threadId), { ...call, body: { name } });
  }

  /** What its next turns run with, key by key; null removes a key. */
  changeSettings(threadId: string, settings: Readonly<Record<string, unknown>>, call?: Call): Promise<Thread> {
    return this.#http.json("PATCH", thread(threadId), { ...call, body: { settings } });
  }

  archiveThread(threadId: string, call?: Call): Promise<Accepted> {
    return this.#http.json("POST", thread(threadId, "archive"), { ...call, body: {} });
  }

  unarchiveThread(threadId: string, call?: Call): Promise<Accepted> {
    return this.#http.json("POST", thread(threadId, "unarchive"), { ...call, body: {} });
  }

  deleteThread(threadId: string, call?: Call): Promise<Accepted> {
    return this.#http.json("DELETE", thread(threadId), call);
  }

  forkThread(threadId: string, fork: ForkThread = {}, call?: Call): Promise<ThreadDetail> {
    return this.#http.json("POST", thread(threadId, "fork"), { ...call, body: fork });
  }

  /** Another envelope for an idle thread; `to: "back"` is the one that was left last. */
  hopThread(threadId: string, hop: HopThread, call?: Call): Promise<HopAnswer> {
    return this.#http.json("POST", thread(threadId, "hop"), { ...call, body: hop });
  }

  /** Answered when the input is durable. With a `clientId` it can be sent again after a broken connection. */
  startTurn(threadId: string, turn: StartTurn, call?: Call): Promise<Turn> {
    return this.#http.json("POST", thread(threadId, "turns"), { ...call, body: turn });
  }

  listTurns(threadId: string, query: Page = {}, call?: Call): Promise<TurnPage> {
    return this.#http.json("GET", thread(threadId, "turns"), { ...call, query });
  }

  readTurn(threadId: string, turnId: string, call?: Call): Promise<Turn> {
    return this.#http.json("GET", thread(threadId, "turns", turnId), call);
  }

  interruptTurn(threadId: string, turnId: string, call?: Call): Promise<Accepted> {
    return this.#http.json("POST", thread(threadId, "turns", turnId, "interrupt"), { ...call, body: {} });
  }

  steerTurn(threadId: string, turnId: string, input: StartTurn["input"], call?: Call): Promise<Accepted> {
    return this.#http.json("POST", thread(threadId, "turns", turnId, "steer"), { ...call, body: { input } });
  }

  listItems(
    threadId: string,
    query: Query & {
      readonly after?: number;
      /** The last ones that started before this one, in place of `after`. */
      readonly before?: number;
      readonly limit?: number;
      readonly turnId?: string;
      /** Without outputs, diffs and images. */
      readonly brief?: boolean;
    } = {},
    call?: Call,
  ): Promise<ItemPage> {
    return this.#http.json("GET", thread(threadId, "items"), { ...call, query });
  }

  /** Commands that run now, each with its processes. */
  listProcesses(threadId: string, call?: Call): Promise<ProcessList> {
    return this.#http.json("GET", thread(threadId, "processes"), call);
  }

  /** Ends one process as it was listed, with those below it; the turn continues. */
  endProcess(
    threadId: string,
    { pid, startTicks }: { readonly pid: number; readonly startTicks: string },
    call?: Call,
  ): Promise<EndedProcess> {
    const path = thread(threadId, "processes", String(pid), "end");
    return this.#http.json("POST", path, { ...call, body: { startTicks } });
  }

  /** Types into a running command, by `processId` of its list, or ends its input. What was typed is on record. */
  writeInput(
    threadId: string,
    { processId, ...input }: { readonly processId: string; readonly text?: string; readonly end?: boolean },
    call?: Call,
  ): Promise<WrittenInput> {
    return this.#http.json("POST", thread(threadId, "commands", processId, "input"), { ...call, body: input });
  }

  /** The whole output of a command, by `outputBlob` of its item; bytes from `from`, at most `limit`. */
  async readOutput(
    threadId: string,
    { sha256, from, limit }: { readonly sha256: string; readonly from?: number; readonly limit?: number },
    call?: Call,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const path = thread(threadId, "outputs", sha256);
    const { body } = await this.#http.open("GET", path, { ...call, query: { from, limit } });
    if (body === null) throw new HeddleApiError("server.failed", "the server sent no output");
    return body;
  }

  /** What the agent's edits changed, as they were recorded; what commands wrote is not in it. */
  threadDiff(threadId: string, query: { readonly turnId?: string } = {}, call?: Call): Promise<ThreadDiff> {
    return this.#http.json("GET", thread(threadId, "diff"), { ...call, query });
  }

  /** Of one thread, or of all. */
  listApprovals(threadId?: string, call?: Call): Promise<ApprovalList> {
    return this.#http.json("GET", threadId === undefined ? "api/approvals" : thread(threadId, "approvals"), call);
  }

  /** A decision alone, or with what it brings along: answers, content, some of the rights that were asked for. */
  answerApproval(threadId: string, approvalId: string, answer: Decision | Answer, call?: Call): Promise<Accepted> {
    const body = typeof answer === "string" ? { decision: answer } : answer;
    return this.#http.json("POST", thread(threadId, "approvals", approvalId), { ...call, body });
  }

  /** Every stored event once and in order, through broken connections and restarts of the server. */
  follow(options: FollowOptions = {}): AsyncGenerator<Followed, void, void> {
    return follow(this.#http, options);
  }

  /** Starts a turn and waits for its end; `onEvent` gets every event. */
  async runTurn(
    threadId: string,
    turn: StartTurn,
    {
      onEvent,
      ...options
    }: Omit<FollowOptions, "threadId" | "after"> & { onEvent?: (followed: Followed) => void } = {},
  ): Promise<TurnResult> {
    const started = await this.startTurn(threadId, turn, options);
    let message: string | undefined;
    for await (const followed of this.follow({ ...options, threadId, after: started.seq - 1 })) {
      onEvent?.(followed);
      if (followed.kind !== "event") continue;
      const { body } = followed.event;
      if (body.type === "item.completed" && body.item.type === "agentMessage" && body.item.isPartial !== true)
        message = body.item.text;
      if (body.type === "turn.completed" && body.turnId === started.id)
        return { turn: await this.readTurn(threadId, started.id, options), message };
    }
    throw new HeddleApiError("thread.deleted", `thread ${threadId} ended before its turn did`);
  }
}

function thread(...parts: readonly string[]): string {
  return `api/threads/${parts.map(encodeURIComponent).join("/")}`;
}
