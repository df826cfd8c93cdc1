/**
 * Params that the original declares and Heddle does nothing with, by their names and with the reason. What is neither
 * declared in `params.ts` nor here fails a test (scripts/codex-params.test.ts).
 */

/** Nothing that a client could notice is missing. A name counts for every method; after a method, for that one alone. */
export const PARAMS_OF_NO_CONCERN: Readonly<Record<string, string>> = {
  _meta: "a call from outside a turn carries no context of one",
  allowProviderModelFallback: "a model that is not there is refused, not replaced",
  approvalsReviewer: "whoever follows the thread is asked; the answer says `user`",
  "capabilities.explicitGatewayOauth": "belongs to OpenAI's cloud",
  "capabilities.extensions": "no extension of MCP is passed on to clients",
  "capabilities.mcpServerOpenaiFormElicitation": "no extension of MCP is passed on to clients",
  "capabilities.requestAttestation": "belongs to OpenAI's cloud",
  cyberAccessProgram: "belongs to OpenAI's cloud",
  daybreakEnabled: "belongs to OpenAI's cloud",
  disabledPluginIds: "there are no plugins",
  "input[].detail": "images are sent whole",
  mockExperimentalField: "a test of Codex itself",
  origin: "who has set a goal is recorded as its author",
  parentTurnId: "statistics of the client",
  responsesapiClientMetadata: "belongs to OpenAI's cloud",
  responsesapiClientMetadataPatch: "belongs to OpenAI's cloud",
  rootTurnId: "statistics of the client",
  "sandboxPolicy.excludeSlashTmp": "commands have a temporary folder of their own",
  "sandboxPolicy.excludeTmpdirEnvVar": "commands have a temporary folder of their own",
  serviceName: "statistics of the client",
  sessionStartSource: "statistics of the client",
  target: "there are no apps",
  threadSource: "statistics of the client",
  turnTrigger: "statistics of the client",
  useStateDbOnly: "threads are listed from the store alone",
  "account/login/start appBrand": "belongs to OpenAI's cloud",
  "account/login/start chatgptPlanType": "belongs to OpenAI's cloud",
  "account/login/start codexStreamlinedLogin": "belongs to OpenAI's cloud",
  "account/login/start sessionToken": "only for AWS sessions, which are refused",
  "account/login/start useHostedLoginSuccessPage": "belongs to OpenAI's cloud",
  "account/rateLimits/read excludeResetCreditDetails": "belongs to OpenAI's cloud",
  "account/rateLimits/read supportsLunaReserve": "belongs to OpenAI's cloud",
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
  multiAgentMode: "there are no agents besides the one of the turn",
  projectId: "ordering of threads is left to the client",
  runtimeWorkspaceRoots: "a turn works in one folder; `writableRoots` of a sandbox policy names others",
  selectedCapabilityRoots: "skills and servers are those of the configuration",
};

/** The only way a thread is stored, and the only mode of its agents, are no wishes. */
const AS_IT_IS: ReadonlySet<unknown> = new Set([undefined, null, false, "paginated", "explicitRequestOnly"]);

/** Names of what was asked for with a call and has no effect. */
export function unusedParams(params: unknown): readonly string[] {
  if (typeof params !== "object" || params === null) return [];
  return Object.entries(params)
    .filter(([name, value]) => Object.hasOwn(PARAMS_WITHOUT_EFFECT, name) && !AS_IT_IS.has(value) && !isEmpty(value))
    .map(([name]) => name);
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
