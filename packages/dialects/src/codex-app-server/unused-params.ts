/**
 * Params that the original declares and Heddle does nothing with, by their names and with the reason. What is neither
 * declared in `params.ts` nor here fails a test (scripts/codex-params.test.ts).
 */

/** What a turn does and what a client is sent is the same without them. A name counts for every method; after a method, for that one alone. */
export const PARAMS_OF_NO_CONCERN: Readonly<Record<string, string>> = {
  // codex-acp sends it with every turn, and shows a warning as words of the agent.
  approvalsReviewer: "the user is asked, and what is answered says so; no model reviews approvals",
  allowProviderModelFallback: "the model that is named is asked; it is never replaced",
  "capabilities.explicitGatewayOauth": "belongs to OpenAI's cloud",
  "capabilities.extensions": "no extension of MCP is passed on to clients",
  "capabilities.mcpServerOpenaiFormElicitation": "no extension of MCP is passed on to clients",
  "capabilities.requestAttestation": "belongs to OpenAI's cloud",
  cyberAccessProgram: "belongs to OpenAI's cloud",
  daybreakEnabled: "belongs to OpenAI's cloud",
  "input[].detail": "the provider chooses how closely it looks at an image",
  mockExperimentalField: "a test of Codex itself",
  origin: "who has set a goal is recorded as its author",
  parentTurnId: "statistics of the client",
  responsesapiClientMetadata: "belongs to OpenAI's cloud",
  responsesapiClientMetadataPatch: "belongs to OpenAI's cloud",
  rootTurnId: "statistics of the client",
  "sandboxPolicy.excludeSlashTmp": "commands have a temporary folder of their own",
  "sandboxPolicy.excludeTmpdirEnvVar": "commands have a temporary folder of their own",
  serviceName: "statistics of the client",
  threadSource: "statistics of the client; a thread shows null",
  turnTrigger: "statistics of the client",
  useStateDbOnly: "threads are listed from the store alone",
  "account/login/start appBrand": "belongs to OpenAI's cloud",
  "account/login/start chatgptPlanType": "belongs to OpenAI's cloud",
  "account/login/start codexStreamlinedLogin": "belongs to OpenAI's cloud",
  "account/login/start sessionToken": "only for AWS sessions, which are refused",
  "account/login/start useHostedLoginSuccessPage": "belongs to OpenAI's cloud",
  "account/rateLimits/read excludeResetCreditDetails": "belongs to OpenAI's cloud",
  "account/rateLimits/read supportsLunaReserve": "belongs to OpenAI's cloud",
  "mcpServer/resource/read target": "there are no apps",
  "mcpServer/resource/read connectorId": "there are no apps",
  "mcpServer/resource/read originCallId": "there are no apps",
  "plugin/install installAttemptId": "statistics of the client",
  "plugin/installed cwds": "a plugin is installed for every folder",
  "plugin/installed installSuggestionPluginNames": "nothing is suggested",
  "plugin/list forceRefetch": "plugins are read with every call",
  "plugin/reconcile reason": "statistics of the client",
  "skills/list forceReload": "skills are read anew with every call",
};

/** The client asks for something and does not get it: it is sent a warning that names them. */
export const PARAMS_WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  deferGoalContinuation: "work for a goal begins when its turn begins",
  environments: "a server works on its own machine",
  historyMode: "every thread is read in pages",
  experimentalRawEvents: "events of the model are not passed on",
  multiAgentMode: "the owner decides about child threads, by `features.multi_agent`",
  "thread/metadata/update projectId": "there are no projects; a client keeps its own",
  "thread/start projectId": "there are no projects; a client keeps its own",
  runtimeWorkspaceRoots: "a turn works in one folder; `writableRoots` of a sandbox policy names others",
  selectedCapabilityRoots: "skills are found in their usual folders, servers named by `config.mcp_servers`",
  sessionStartSource: "hooks receive `startup` or `resume`",
};

/** Values that ask for nothing else than what happens anyway. */
const AS_IT_IS: Readonly<Record<string, string>> = {
  historyMode: "paginated",
  multiAgentMode: "explicitRequestOnly",
  sessionStartSource: "startup",
};

/** Names of what was asked for with a call and has no effect. */
export function unusedParams(method: string, params: unknown): readonly string[] {
  if (typeof params !== "object" || params === null) return [];
  return Object.entries(params)
    .filter(([name, value]) => isListed(method, name) && AS_IT_IS[name] !== value && !isNothing(value))
    .map(([name]) => name);
}

function isListed(method: string, name: string): boolean {
  return [name, `${method} ${name}`].some((entry) => Object.hasOwn(PARAMS_WITHOUT_EFFECT, entry));
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
