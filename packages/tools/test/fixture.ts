/** A real workspace with its walls, and a way to send calls through `dispatch` as a model would. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ApprovalPolicy, ApprovalQuestion, Decision, Item, SandboxMode } from "@heddle/protocol";
import { dispatch, type DispatchOutcome, type ToolIntent } from "../src/calls/dispatch.ts";
import { childToolset } from "../src/builtin/child-toolset.ts";
import type { ChildThreads } from "../src/calls/child-threads.ts";
import { envelopeFor } from "../src/calls/envelopes.ts";
import { approvalKey } from "../src/calls/policy.ts";
import { toolsFor, type ToolFamily } from "../src/calls/registry.ts";
import { openSandbox, openUnconfined } from "../src/sandbox/open.ts";
import type { ProtectedPathViolation } from "../src/sandbox/sandbox.ts";
import { commandEnvironment } from "../src/commands/environment.ts";
import { openThreadState, QUIET } from "../src/calls/thread-state.ts";
import type { ThreadState } from "../src/calls/tool.ts";

export interface FixtureOptions {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly mode?: SandboxMode;
  readonly approval?: ApprovalPolicy;
  readonly family?: ToolFamily;
  /** `none` for tests of in-process tools, which need no kernel layer. */
  readonly sandbox?: "kernel" | "none";
  readonly answer?: (question: ApprovalQuestion) => Decision;
  readonly env?: NodeJS.ProcessEnv | ((workspace: string) => NodeJS.ProcessEnv);
  /** Threads may be started, by this engine. */
  readonly children?: ChildThreads;
  /** Absent: where there is an engine for it. */
  readonly mayStartThreads?: boolean;
  readonly onStarted?: (item: Item, intent: ToolIntent) => Promise<void>;
}

export interface Fixture extends AsyncDisposable {
  readonly root: string;
  readonly workspace: string;
  readonly home: string;
  readonly state: ThreadState;
  readonly started: { readonly item: Item; readonly intent: ToolIntent }[];
  readonly questions: ApprovalQuestion[];
  readonly violations: ProtectedPathViolation[];
  /** Live output by item. */
  readonly live: Map<string, string>;
  call(name: string, args: unknown, options?: CallOptions): Promise<DispatchOutcome>;
  /** The input as it came over the wire. */
  callRaw(name: string, input: string, options?: CallOptions): Promise<DispatchOutcome>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly shape?: "json" | "freeform";
  readonly onDelta?: (text: string) => void;
}

export async function openFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "heddle-tools-")));
  const workspace = join(root, "workspace");
  const home = join(root, "home");
  await mkdir(workspace);
  await mkdir(home);
  await writeFile(join(home, "secret.txt"), "a key nobody may see\n");
  for (const [name, content] of Object.entries(options.files ?? {})) {
    await mkdir(dirname(join(workspace, name)), { recursive: true });
    await writeFile(join(workspace, name), content);
  }
  const envelope = envelopeFor({
    mode: options.mode ?? "workspace-write",
    workspace,
    writableRoots: [],
    networkAccess: false,
    approval: options.approval ?? "never",
    masked: [home],
    mayStartThreads: options.mayStartThreads ?? options.children !== undefined,
  });
  const policy = { workspace, writeRoots: envelope.writeRoots, masked: envelope.masked, network: envelope.network };
  const sandbox =
    options.sandbox === "none" || envelope.sandbox === "off"
      ? openUnconfined(policy)
      : await openSandbox(policy, { quarantineDir: join(home, "quarantine") });
  const env = typeof options.env === "function" ? options.env(workspace) : (options.env ?? process.env);
  const state = openThreadState({ blobFolder: join(home, "outputs"), environment: commandEnvironment(env, QUIET) });
  const remembered = new Set<string>();
  const started: Fixture["started"] = [];
  const questions: ApprovalQuestion[] = [];
  const violations: ProtectedPathViolation[] = [];
  const live = new Map<string, string>();
  let calls = 0;

  const fixture: Fixture = {
    root,
    workspace,
    home,
    state,
    started,
    questions,
    violations,
    live,
    call(name, args, callOptions) {
      const input = typeof args === "string" ? args : JSON.stringify(args);
      return fixture.callRaw(name, input, { shape: typeof args === "string" ? "freeform" : "json", ...callOptions });
    },
    callRaw(name, input, callOptions = {}) {
      calls += 1;
      const callId = `call_${calls}`;
      return dispatch(
        { callId, name, input, shape: callOptions.shape ?? "json" },
        {
          toolset: toolsFor(options.family ?? "openai", envelope, {
            children: options.children && childToolset(options.children),
          }),
          envelope,
          sandbox,
          state,
          cwd: workspace,
          signal: callOptions.signal ?? new AbortController().signal,
          remembered,
          newItemId: () => `item_${callId}`,
          async onStarted(item, intent) {
            await options.onStarted?.(item, intent);
            started.push({ item, intent });
          },
          async ask(question) {
            questions.push(question);
            const decision = options.answer?.(question) ?? "decline";
            if (decision === "acceptForThread") remembered.add(approvalKey(question));
            return { decision, by: "user:owner" };
          },
          async onViolation(violation) {
            violations.push(violation);
          },
          stream({ itemId, delta }) {
            live.set(itemId, (live.get(itemId) ?? "") + delta);
            callOptions.onDelta?.(delta);
          },
        },
      );
    },
    async [Symbol.asyncDispose]() {
      await state[Symbol.asyncDispose]();
      await sandbox[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true });
    },
  };
  return fixture;
}

/** All text of an outcome. */
export function textOf(outcome: DispatchOutcome): string {
  return outcome.output.map((part) => (part.type === "text" ? part.text : `<${part.mediaType}>`)).join("\n");
}
