/** A thread as the original shows it. */
import { CODEX_VERSION, type TurnSettings } from "@heddle/protocol";
import { type CodexGitInfo, type CodexThread, type CodexThreadStatus, type CodexTurn } from "./shapes.ts";
import { seconds } from "./turns.ts";

/** What is known of a thread outside its turns. */
export interface ThreadFacts {
  readonly id: string;
  readonly workspace: string;
  readonly origin: string;
  readonly name: string | undefined;
  readonly preview: string | undefined;
  readonly forkedFrom: { readonly threadId: string } | undefined;
  readonly parent?: { readonly threadId: string; readonly depth: number } | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly settings: Pick<TurnSettings, "provider" | "model" | "effort"> | undefined;
  readonly isEphemeral: boolean;
  readonly status: CodexThreadStatus;
  readonly gitInfo?: CodexGitInfo | undefined;
  /** null: it is not kept. */
  readonly path: string | null;
}

const DOOR = "app-server:";

/** What is stored as the origin of a thread that a client of this door has made. */
export function appServerOrigin(clientName: string): string {
  return `${DOOR}${clientName}`;
}

/** Threads of people at work; the others were made by `exec` and what calls it. */
export function isInteractive(origin: string): boolean {
  return origin.startsWith(DOOR);
}

export function codexThread(facts: ThreadFacts, turns: readonly CodexTurn[] = []): CodexThread {
  const { id, workspace, origin, settings } = facts;
  return {
    id,
    environments: [{ environmentId: "local", cwd: workspace, runtimeWorkspaceRoots: [workspace] }],
    extra: null,
    sessionId: id,
    forkedFromId: facts.forkedFrom?.threadId ?? null,
    parentThreadId: facts.parent?.threadId ?? null,
    preview: facts.preview ?? "",
    ephemeral: facts.isEphemeral,
    section: null,
    sectionEnteredAt: null,
    projectId: null,
    historyMode: "paginated",
    modelProvider: settings?.provider ?? "",
    model: settings?.model ?? null,
    reasoningEffort: settings?.effort ?? null,
    createdAt: seconds(facts.createdAt),
    updatedAt: seconds(facts.updatedAt),
    recencyAt: seconds(facts.updatedAt),
    status: facts.status,
    path: facts.path,
    cwd: workspace,
    cliVersion: CODEX_VERSION,
    originator: isInteractive(origin) ? origin.slice(DOOR.length) : origin,
    source: sourceOf(facts),
    canAcceptDirectInput: true,
    threadSource: null,
    agentNickname: null,
    agentRole: null,
    gitInfo: facts.gitInfo ?? null,
    name: facts.name ?? null,
    daybreakEnabled: null,
    turns,
  };
}

function sourceOf({ origin, parent }: ThreadFacts): CodexThread["source"] {
  if (parent === undefined) return isInteractive(origin) ? "vscode" : "exec";
  const { threadId: parent_thread_id, depth } = parent;
  return {
    subAgent: { thread_spawn: { parent_thread_id, depth, agent_path: null, agent_nickname: null, agent_role: null } },
  };
}
