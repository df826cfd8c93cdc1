/** Accounts: who is logged in, and how to change that. What opens an account stays in the server. */
import { randomUUID } from "node:crypto";
import type { AccountStatus, LoginState } from "@heddle/models/accounts";
import { HeddleError } from "@heddle/protocol";
import type { ChatParams, ChatResultOf, ProviderStatus } from "@heddle/dialects/chat";
import type { ChatContext, ChatHandler } from "../call.ts";

export const read: ChatHandler<"chat.account.read"> = async ({ provider, validate }, { server }) => {
  const accounts = await server.accounts();
  const asked = { validate: validate === true };
  const found = provider === undefined ? await accounts.list(asked) : [await accounts.status({ provider }, asked)];
  const providers = found.map(describe);
  const loggedIn = providers.filter(({ logged_in }) => logged_in);
  const account = loggedIn.length === 0 ? null : { providers: loggedIn };
  return { result: { account, providers, logged_in: account !== null, requires_openai_auth: account === null } };
};

export const list: ChatHandler<"chat.account.list"> = async (_params, { server }) => {
  const providers = (await (await server.accounts()).list()).map(describe);
  return { result: { providers } };
};

export const refresh: ChatHandler<"chat.account.refresh"> = async (name, { server }) => {
  const status = await (await server.accounts()).refresh(name);
  changed(server, status.provider);
  return { result: { provider: describe(status) } };
};

export const startLogin: ChatHandler<"chat.account.login.start"> = async (params, { server }) => {
  const { method, api_key, ...name } = params;
  const accounts = await server.accounts();
  if (method === "vendor_cli") {
    throw new HeddleError("usage.invalid", "method: log in with the vendor's own program, in a terminal");
  }
  if (method === "api_key" || api_key !== undefined) return saveKey(server, name, api_key);
  const entry = accounts.registry.find(name.provider);
  const chosen = method ?? (entry.kind === "model" && entry.authMethods.includes("device") ? "device" : "browser");
  const login = await accounts.startLogin(name, chosen);
  accounts.loginEnded(login.loginId).then(
    () => changed(server, entry.id),
    () => undefined,
  );
  const address =
    login.method === "device"
      ? { verification_url: login.verificationUrl, user_code: login.userCode, expires_at: login.expiresAt }
      : { auth_url: login.authUrl };
  return {
    result: {
      session: { login_id: login.loginId, provider: entry.id, method: login.method, interval_secs: 5, ...address },
    },
  };
};

type Name = Pick<ChatParams<"chat.account.login.start">, "provider" | "profile">;

/** A key is saved at once; a client that polls is told so. */
async function saveKey(server: ChatContext, name: Name, key: string | undefined) {
  if (key === undefined) throw new HeddleError("usage.invalid", "api_key: is missing");
  const { provider } = await (await server.accounts()).saveKey(name, key);
  changed(server, provider);
  return { result: { session: { login_id: `${SAVED}${randomUUID()}`, provider, method: "api_key" } } };
}

const SAVED = "key_";

function loginId(params: ChatParams<"chat.account.login.poll">): string {
  return params.login_id ?? params.session?.login_id ?? "";
}

export const pollLogin: ChatHandler<"chat.account.login.poll"> = async (params, { server }) => {
  const id = loginId(params);
  if (id.startsWith(SAVED)) return { result: { status: "authorized" } };
  return { result: progress((await server.accounts()).loginState(id)) };
};

export const cancelLogin: ChatHandler<"chat.account.login.cancel"> = async (params, { server }) => ({
  result: progress(await (await server.accounts()).cancelLogin(loginId(params))),
});

const STATUS = {
  pending: "pending",
  completed: "authorized",
  failed: "error",
  cancelled: "denied",
  expired: "expired",
} as const;

function progress({ status, failure }: LoginState): ChatResultOf<"chat.account.login.poll"> {
  const wait = status === "pending" ? { interval_secs: 5 } : {};
  return { status: STATUS[status], ...wait, ...(failure === undefined ? {} : { error: failure.message }) };
}

export const logout: ChatHandler<"chat.account.logout"> = async (name, { server }) => {
  await (await server.accounts()).logout(name);
  changed(server, name.provider);
  return { result: { ok: true } };
};

function changed({ announce }: ChatContext, provider: string): void {
  announce("chat.account.updated", { provider, ts: new Date().toISOString(), schema: 1 });
}

function describe(status: AccountStatus): ProviderStatus {
  const { provider, profile, isEnabled, isLoggedIn, email, expiresAt, plan, problem } = status;
  return {
    id: provider,
    key: provider.replaceAll("-", "_"),
    profile,
    enabled: isEnabled,
    logged_in: isLoggedIn,
    health: healthOf(status),
    methods: [...status.methods],
    ...(status.source === "none" ? {} : { method: status.source }),
    ...(problem === undefined ? {} : { reason: problem }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(email === undefined ? {} : { account_label: masked(email) }),
    ...(plan === undefined ? {} : { plan }),
  };
}

function healthOf({ isLoggedIn, health }: AccountStatus): ProviderStatus["health"] {
  if (health === "reconnect_required" || health === "refused") return "reconnect_required";
  if (health === "expired") return "refresh_on_use";
  return isLoggedIn ? "ready" : "disconnected";
}

/** Enough to tell one's own accounts apart. */
function masked(email: string): string {
  const [name = "", host = ""] = email.split("@");
  return `${name.slice(0, 2)}…@${host}`;
}
