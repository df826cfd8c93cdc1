/** Every method of the original with what Heddle does about it, for the documentation. */
import { CODEX_METHODS, isSupported, type CodexMethod } from "@heddle/dialects/codex-app-server";

export interface DescribedMethod extends CodexMethod {
  readonly isSupported: boolean;
  /** What differs, or why it is not supported; may be empty. */
  readonly note: string;
}

const CLOUD = "belongs to OpenAI's cloud";
const ORDER = "ordering of threads is left to the client";

/** The longest beginning that fits counts. */
const UNSUPPORTED_REASONS: Readonly<Record<string, string>> = {
  account: CLOUD,
  accountSession: CLOUD,
  app: "there are no apps",
  environment: "a server works on its own machine",
  "experimentalFeature/enablement/set": "there are no experimental features",
  externalAgentConfig: "Codex's own configuration is read in place",
  feedback: CLOUD,
  "fuzzyFileSearch/session": "`fuzzyFileSearch` answers each keystroke from one listing",
  getConversationSummary: "use `thread/read`",
  marketplace: "there are no plugins",
  "mcpServer/event": "events of MCP servers are not passed on",
  memory: "threads are the only memory",
  mock: "a test of Codex itself",
  plugin: "there are no plugins",
  process: "`command/exec` runs commands, in a sandbox",
  project: ORDER,
  remoteControl: CLOUD,
  rollout: "threads are in the journal, not in files",
  "server/diagnostics": "use `heddle doctor`",
  "thread/approveGuardianDeniedAction": "no model reviews approvals",
  "thread/attachment": ORDER,
  "thread/attachmentOwner": ORDER,
  "thread/decrement_elicitation": "a question waits without a timer",
  "thread/increment_elicitation": "a question waits without a timer",
  "thread/items/read": "`thread/items/list` reads them in pages",
  "thread/memory": "threads are the only memory",
  "thread/prediction": "nothing is predicted; use `thread/sample`",
  "thread/queue": "input that waits is added, listed and deleted",
  "thread/readState": ORDER,
  "thread/realtime": "no audio",
  "thread/searchOccurrences": "`thread/search` finds the thread",
  "thread/section": ORDER,
  "thread/timeline": "`thread/turns/list` and `thread/items/list` read it",
  threadSection: ORDER,
  "turn/settings/update": "the next turn takes new settings",
  userVerification: CLOUD,
  windowsSandbox: "not on Windows",
};

const DIFFERS: Readonly<Record<string, string>> = {
  "account/login/start": "`apiKey`, and with `openai-codex` enabled `chatgpt` and `chatgptDeviceCode`",
  "account/rateLimits/read": "always refused: no limits are known",
  "command/exec": "always inside Heddle's sandbox unless `dangerFullAccess` is asked for",
  "config/mcpServer/reload": "refused when the servers have changed: start the server again",
  "config/value/write": "Heddle's own file alone, checked before it is replaced",
  "config/batchWrite": "Heddle's own file alone, checked before it is replaced",
  "config/read": "values of headers and of servers' variables are `[hidden]`",
  "experimentalFeature/list": "empty",
  "fs/copy": "writes inside the client's folders alone",
  "fs/createDirectory": "writes inside the client's folders alone",
  "fs/readFile": "not Heddle's home; at most 12 MiB",
  "fs/remove": "writes inside the client's folders alone",
  "fs/writeFile": "writes inside the client's folders alone",
  "thread/sample": "without tools of MCP servers; `responseId` is Heddle's own",
  "thread/start": "also `clientThreadId`: the same id again is the same thread",
  "skills/config/write": "kept as `disabled_skills` in Heddle's own file",
  "mcpServer/oauth/login": "clients are registered dynamically (`dcr`); `cimd` is refused",
  "mcpServer/tool/call": "a server of its own for this connection, not that of a running turn",
};

export function describeMethods(): readonly DescribedMethod[] {
  return [...CODEX_METHODS.values()].map((method) => {
    const note = isSupported(method.name) ? DIFFERS[method.name] : unsupportedReason(method.name);
    return { ...method, isSupported: isSupported(method.name), note: note ?? "" };
  });
}

function unsupportedReason(name: string): string | undefined {
  const fitting = Object.entries(UNSUPPORTED_REASONS).filter(([start]) => name === start || isBelow(name, start));
  return fitting.toSorted(([a], [b]) => b.length - a.length)[0]?.[1];
}

function isBelow(name: string, start: string): boolean {
  return name.startsWith(`${start}/`) || (start.includes("/") && name.startsWith(start));
}
