/** Every method of the original with what Heddle does about it, for the documentation. */
import { CODEX_METHODS, isSupported, type CodexMethod } from "@heddle/dialects/codex-app-server";
import { unsupported } from "./unsupported.ts";

export interface DescribedMethod extends CodexMethod {
  readonly isSupported: boolean;
  /** What differs, which may be nothing; or why it is not supported and what to use instead. */
  readonly note: string;
}

const DIFFERS: Readonly<Record<string, string>> = {
  "account/login/start": "`apiKey`, and with `openai-codex` enabled `chatgpt` and `chatgptDeviceCode`",
  "account/rateLimits/read": "always refused: no limits are known",
  "command/exec": "always inside Heddle's sandbox unless `dangerFullAccess` is asked for",
  "config/mcpServer/reload": "refused when the servers have changed: start the server again",
  "config/value/write": "the file in force, Heddle's own or else Codex's, checked before it is replaced",
  "config/batchWrite": "the file in force, Heddle's own or else Codex's, checked before it is replaced",
  "config/read":
    "values of headers and of servers' variables, and addresses with a password or a query, are `[hidden]`",
  "account/usage/read": "from the ledger of the home, without a login; in tokens and dollars, credits are 0",
  "experimentalFeature/enablement/set": "changes nothing: what Heddle has is on",
  "experimentalFeature/list": "what Heddle has is on, what it has not is off",
  "fs/copy": "writes inside the client's folders alone",
  "fs/createDirectory": "writes inside the client's folders alone",
  "fs/readFile": "not Heddle's home; at most 12 MiB",
  "fs/remove": "writes inside the client's folders alone",
  "fs/writeFile": "writes inside the client's folders alone",
  "plugin/install": "a local folder; its skills and MCP servers count from the next turn on, its hooks are not run",
  "plugin/list": "those in folders of this machine, by `.agents/plugins/marketplace.json`",
  "plugin/reconcile": "empty: no plugin comes from elsewhere",
  "process/spawn": "always inside Heddle's sandbox, as a turn with default settings has it",
  "thread/sample": "without tools of MCP servers; `responseId` is Heddle's own",
  "turn/settings/update": "with `features.step_model_switching`: also model, effort, summary and tier",
  "thread/start": "also `clientThreadId`: the same id again is the same thread",
  "skills/config/write": "kept as `disabled_skills` in Heddle's own file",
  "mcpServer/oauth/login": "clients are registered dynamically (`dcr`); `cimd` is refused",
  "mcpServer/tool/call": "a server of its own for this connection, not that of a running turn",
};

export function describeMethods(): readonly DescribedMethod[] {
  return [...CODEX_METHODS.values()].map((method) => {
    if (isSupported(method.name)) return { ...method, isSupported: true, note: DIFFERS[method.name] ?? "" };
    const reason = unsupported(method.name);
    const note = reason === undefined ? "" : `${reason.why}; use ${reason.instead}`;
    return { ...method, isSupported: false, note };
  });
}
