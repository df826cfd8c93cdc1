/** `account/*`: keys and logins, in the one store that every door uses. */
import { isHeddleError, isUuid, reasonOf } from "@heddle/protocol";
import type { Accounts, AccountStatus, StartedLogin } from "@heddle/models/accounts";
import type { OpenAiAuth } from "../../host/host.ts";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { refuse } from "../thread-facts.ts";

const KEY_PROVIDER = "openai";
const LOGIN_PROVIDER = "openai-codex";
const REFRESH_MS = 20_000;

export const readAccount: Handler<"account/read"> = async ({ refreshToken }, { server }) => {
  const accounts = await server.host.accounts?.();
  if (refreshToken === true) {
    // A login that cannot be renewed shows in its status; this call does not fail.
    await accounts?.refresh({ provider: LOGIN_PROVIDER }, AbortSignal.timeout(REFRESH_MS)).catch(() => undefined);
  }
  const { isRequired, hasCodexKey } = await openAiAuth(server);
  const account = accountOf(await loggedIn(accounts)) ?? (isRequired && hasCodexKey ? { type: "apiKey" } : null);
  return { result: { account, requiresOpenaiAuth: isRequired, workspaceRouting: null } };
};

/** The older form of the same method; a token is never sent. */
export const readAuthStatus: Handler<"getAuthStatus"> = async (_, { server }) => {
  const { isRequired, hasCodexKey } = await openAiAuth(server);
  const authMethod = authModeOf(await loggedIn(await server.host.accounts?.()));
  return {
    result: {
      authMethod: authMethod ?? (isRequired && hasCodexKey ? "apikey" : null),
      authToken: null,
      requiresOpenaiAuth: isRequired,
    },
  };
};

/** Of the provider that a turn without further settings asks. */
async function openAiAuth({ host, settings }: ServerContext): Promise<OpenAiAuth> {
  const { provider } = await settings.resolve({ mayLackKey: true }).catch(withoutProvider);
  return (await host.openAiAuth?.(provider)) ?? { isRequired: false, hasCodexKey: false };
}

/** None can be chosen yet: OpenAI would be asked. */
function withoutProvider(error: unknown): { readonly provider: string } {
  if (isHeddleError(error)) return { provider: KEY_PROVIDER };
  throw error;
}

export const startLogin: Handler<"account/login/start"> = async (params, { server }) => {
  const accounts = await requireAccounts(server);
  switch (params.type) {
    case "apiKey":
      await accounts.saveKey({ provider: KEY_PROVIDER }, params.apiKey);
      return {
        result: { type: "apiKey" },
        after: () => announceLogin(server, accounts, { loginId: null, error: null }),
      };
    case "chatgpt":
    case "chatgptDeviceCode": {
      const method = params.type === "chatgpt" ? "browser" : "device";
      const started = await accounts.startLogin({ provider: LOGIN_PROVIDER }, method);
      return { result: { type: params.type, ...addressOf(started) }, after: () => follow(server, accounts, started) };
    }
    default:
      throw refuse(`account/login/start with ${params.type} is not supported by heddle app-server`);
  }
};

function addressOf(started: StartedLogin): Readonly<Record<string, string>> {
  const { loginId } = started;
  return started.method === "browser"
    ? { loginId, authUrl: started.authUrl }
    : { loginId, verificationUrl: started.verificationUrl, userCode: started.userCode };
}

function follow(server: ServerContext, accounts: Accounts, { loginId }: StartedLogin): void {
  accounts.loginEnded(loginId).then(
    ({ status, failure }) => {
      const error = status === "completed" ? null : (failure?.message ?? `the login was ${status}`);
      announceLogin(server, accounts, { loginId, error });
    },
    (error: unknown) => server.log(`the end of a login is not known: ${reasonOf(error)}`),
  );
}

function announceLogin(
  server: ServerContext,
  accounts: Accounts,
  { loginId, error }: { readonly loginId: string | null; readonly error: string | null },
): void {
  const params = { loginId, success: error === null, error, onboardingEntrypoint: null };
  server.announce({ method: "account/login/completed", params });
  if (error === null) announceAccount(server, accounts);
}

function announceAccount(server: ServerContext, accounts: Accounts): void {
  loggedIn(accounts).then(
    (status) => {
      const params = { authMode: authModeOf(status), planType: status?.plan ?? null };
      server.announce({ method: "account/updated", params });
    },
    (error: unknown) => server.log(`who is logged in is not known: ${reasonOf(error)}`),
  );
}

export const cancelLogin: Handler<"account/login/cancel"> = async ({ loginId }, { server }) => {
  if (!isUuid(loginId.toLowerCase())) throw refuse(`invalid login id: ${loginId.slice(0, 100)}`);
  const accounts = await requireAccounts(server);
  try {
    if (accounts.loginState(loginId).status !== "pending") return { result: { status: "notFound" } };
    await accounts.cancelLogin(loginId);
    return { result: { status: "canceled" } };
  } catch (error) {
    if (isHeddleError(error) && error.code === "login.not-found") return { result: { status: "notFound" } };
    throw error;
  }
};

/** What is stored here goes; a key of the server's environment is not its to take away. */
export const logout: Handler<"account/logout"> = async (_, { server }) => {
  const accounts = await requireAccounts(server);
  for (const provider of [KEY_PROVIDER, LOGIN_PROVIDER]) await accounts.logout({ provider });
  return { result: {}, after: () => announceAccount(server, accounts) };
};

export const readRateLimits: Handler<"account/rateLimits/read"> = async (_, { server }) => {
  const status = await loggedIn(await server.host.accounts?.());
  throw refuse(
    status?.provider === LOGIN_PROVIDER
      ? "account/rateLimits/read: the limits of an account are known only to its provider"
      : "codex account authentication required to read rate limits",
  );
};

async function requireAccounts({ host }: ServerContext): Promise<Accounts> {
  const accounts = await host.accounts?.();
  if (accounts === undefined) throw refuse("this server has no accounts");
  return accounts;
}

/** A login is preferred to a key. undefined: neither exists. */
async function loggedIn(accounts: Accounts | undefined): Promise<AccountStatus | undefined> {
  if (accounts === undefined) return undefined;
  for (const provider of [LOGIN_PROVIDER, KEY_PROVIDER]) {
    const status = await accounts.status({ provider }).catch(() => undefined);
    if (status?.isLoggedIn === true && status.isEnabled) return status;
  }
  return undefined;
}

function authModeOf(status: AccountStatus | undefined): "apikey" | "chatgpt" | null {
  if (status === undefined) return null;
  return status.provider === LOGIN_PROVIDER ? "chatgpt" : "apikey";
}

function accountOf(status: AccountStatus | undefined): Readonly<Record<string, unknown>> | null {
  if (status === undefined) return null;
  if (status.provider !== LOGIN_PROVIDER) return { type: "apiKey" };
  return { type: "chatgpt", email: status.email ?? null, planType: status.plan ?? "unknown", workspaceName: null };
}
