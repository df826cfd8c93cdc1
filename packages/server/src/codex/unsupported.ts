/** Methods of the original that Heddle does not carry out: why, and what a client uses instead. */
import { HeddleError } from "@heddle/protocol";

interface Unsupported {
  readonly why: string;
  /** A method, a command or a page: never nothing. */
  readonly instead: string;
}

const CLOUD = "it belongs to OpenAI's cloud";
const ORDER = "the order of threads is left to the client";
const MEMORY: Unsupported = { why: "threads are the only memory", instead: "`thread/search`" };
const PROVIDER: Unsupported = { why: CLOUD, instead: "the website of the provider" };
const PROJECT: Unsupported = { why: ORDER, instead: "`thread/list` with `cwd`" };
const SHARING: Unsupported = { why: "plugins are folders of this machine", instead: "`plugin/list` with `cwds`" };
const TIMER: Unsupported = { why: "a question waits without a timer", instead: "nothing: leave the call out" };
const WINDOWS: Unsupported = { why: "there is no sandbox for Windows", instead: "`heddle doctor`, inside WSL" };
const IMPORT: Unsupported = {
  why: "the configuration of Codex is read where it is",
  instead: "`config/read`, and `config/value/write` for what differs",
};

/** The longest beginning that fits counts. */
const UNSUPPORTED: Readonly<Record<string, Unsupported>> = {
  account: PROVIDER,
  "account/bedrock": { why: "providers are configured", instead: "`[model_providers]` in config.toml" },
  "account/gatewayOAuth": { why: "there is no gateway", instead: "`account/login/start`" },
  "account/gcp": { why: "providers are configured", instead: "`[model_providers]` in config.toml" },
  accountSession: { why: "each provider has one account that is used", instead: "`heddle accounts`" },
  app: { why: "there are no apps of OpenAI's cloud", instead: "`mcpServerStatus/list`" },
  environment: { why: "a server works on its own machine", instead: "`heddle app-server` on the other machine" },
  externalAgentConfig: IMPORT,
  feedback: { why: CLOUD, instead: "`heddle threads export`" },
  getConversationSummary: { why: "it was replaced", instead: "`thread/read`" },
  marketplace: SHARING,
  "mcpServer/event": { why: "events of MCP servers are not passed on", instead: "`mcpServer/resource/read`" },
  memory: MEMORY,
  mock: { why: "it is a test of Codex itself", instead: "`model/list`" },
  plugin: SHARING,
  "plugin/install": { why: "plugins are folders of this machine", instead: "`plugin/install` with `marketplacePath`" },
  project: PROJECT,
  remoteControl: { why: CLOUD, instead: "`heddle serve` with a token" },
  rollout: { why: "threads are in the journal, not in files", instead: "`heddle store`" },
  "server/diagnostics": { why: "it is a command", instead: "`heddle doctor`" },
  "thread/approveGuardianDeniedAction": { why: "no model reviews approvals", instead: "the answer to the approval" },
  "thread/decrement_elicitation": TIMER,
  "thread/increment_elicitation": TIMER,
  "thread/items/read": { why: "items are read in pages", instead: "`thread/items/list`" },
  "thread/memory": MEMORY,
  "thread/prediction": { why: "nothing is predicted", instead: "`thread/sample`" },
  "thread/readState": { why: "what a person has read is not kept", instead: "`thread/list` with `updatedAt`" },
  "thread/realtime": { why: "there is no audio", instead: "`turn/start`" },
  "thread/searchOccurrences": { why: "threads are found, not positions in them", instead: "`thread/search`" },
  "thread/section": PROJECT,
  "thread/timeline": { why: "it is read in pages", instead: "`thread/turns/list` and `thread/items/list`" },
  threadSection: PROJECT,
  userVerification: PROVIDER,
  windowsSandbox: WINDOWS,
};

export function unsupported(name: string): Unsupported | undefined {
  const fitting = Object.entries(UNSUPPORTED).filter(([start]) => name === start || isBelow(name, start));
  return fitting.toSorted(([a], [b]) => b.length - a.length)[0]?.[1];
}

function isBelow(name: string, start: string): boolean {
  return name.startsWith(`${start}/`) || (start.includes("/") && name.startsWith(start));
}

export function unsupportedError(method: string): HeddleError {
  const { why, instead } = unsupported(method) ?? PROVIDER;
  const message = `${method} is not supported by heddle app-server: ${why}; use ${instead}`;
  return new HeddleError("door.unsupported", message, { details: { method, instead } });
}
