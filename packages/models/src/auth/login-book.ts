/**
 * Running logins. Each has an id, a state that can be read at any time, and exactly one end; a client sees only an address
 * and perhaps a code to enter, never a token. A second login for the same account replaces the first.
 */
import { randomUUID } from "node:crypto";
import { HeddleError, toHeddleError, type ErrorCode } from "@heddle/protocol";
import { keyText, type Credential, type CredentialKey } from "./credential.ts";
import type { CredentialStore } from "./store.ts";

/** Ended logins are kept for clients that ask late. */
const MAX_REMEMBERED = 100;

export interface LoginState {
  readonly loginId: string;
  readonly provider: string;
  readonly profile: string;
  readonly status: "pending" | "completed" | "failed" | "cancelled" | "expired";
  readonly failure?: { readonly code: ErrorCode; readonly message: string };
}

/** Waits for the browser of a login; absent where none returns. */
interface Waiting extends AsyncDisposable {
  paste(text: string): void;
}

export interface LoginBook extends AsyncDisposable {
  /** Ends a running login of the same account. */
  clear(key: CredentialKey): Promise<void>;
  /** Follows a login to its end and stores what `wait` returns. */
  follow(key: CredentialKey, browser: Waiting | undefined, wait: (signal: AbortSignal) => Promise<Credential>): string;
  state(loginId: string): LoginState;
  /** Resolves with the end. */
  ended(loginId: string): Promise<LoginState>;
  /** The address at which the browser ended, where it could not return by itself. */
  paste(loginId: string, text: string): void;
  /** Resolves when it has ended completely. */
  cancel(loginId: string): Promise<LoginState>;
}

interface Running {
  readonly key: CredentialKey;
  readonly control: AbortController;
  readonly done: Promise<void>;
  readonly browser: Waiting | undefined;
  state: LoginState;
}

export function createLoginBook(store: CredentialStore): LoginBook {
  const logins = new Map<string, Running>();
  const find = (loginId: string): Running => {
    const login = logins.get(loginId);
    if (login === undefined) throw new HeddleError("login.not-found", `there is no login "${loginId}"`);
    return login;
  };

  async function end(login: Running): Promise<LoginState> {
    login.control.abort(new HeddleError("login.cancelled", "the login was cancelled"));
    await login.done;
    return login.state;
  }

  return {
    async clear(key) {
      const rivals = [...logins.values()].filter((login) => keyText(login.key) === keyText(key));
      await Promise.all(rivals.filter(isPending).map(end));
    },
    follow(key, browser, wait) {
      const loginId = randomUUID();
      const control = new AbortController();
      const run = async (): Promise<LoginState["status"]> => {
        const credential = await wait(control.signal);
        control.signal.throwIfAborted();
        await store.change(key, () => credential, { signal: control.signal });
        return "completed";
      };
      const state: LoginState = { loginId, provider: key.provider, profile: key.profile, status: "pending" };
      const done = run()
        .then(
          (status) => void (login.state = { ...state, status }),
          (error: unknown) => void (login.state = { ...state, ...failureOf(error) }),
        )
        .then(() => browser?.[Symbol.asyncDispose]());
      const login: Running = { key, control, browser, done, state };
      logins.set(loginId, login);
      forget(logins);
      return loginId;
    },
    state: (loginId) => find(loginId).state,
    async ended(loginId) {
      const login = find(loginId);
      await login.done;
      return login.state;
    },
    paste(loginId, text) {
      const { browser } = find(loginId);
      if (browser === undefined) throw new HeddleError("usage.invalid", "a login by device code needs nothing pasted");
      browser.paste(text);
    },
    cancel: (loginId) => end(find(loginId)),
    async [Symbol.asyncDispose]() {
      await Promise.all([...logins.values()].map(end));
    },
  };
}

function isPending({ state }: Running): boolean {
  return state.status === "pending";
}

function forget(logins: Map<string, Running>): void {
  for (const [loginId, login] of logins) {
    if (logins.size <= MAX_REMEMBERED) return;
    if (!isPending(login)) logins.delete(loginId);
  }
}

function failureOf(error: unknown): Pick<LoginState, "status" | "failure"> {
  const { code, message } = toHeddleError(error, "login.failed");
  const status = code === "login.cancelled" ? "cancelled" : code === "login.expired" ? "expired" : "failed";
  return { status, failure: { code, message } };
}

export interface RemovedLogin {
  readonly wasLoggedIn: boolean;
  readonly isRevoked: boolean;
}

const REVOKE_MS = 5_000;

/** Revokes what can be revoked, then removes this entry and no other. */
export async function removeLogin(
  store: CredentialStore,
  key: CredentialKey,
  revoke: (entry: Credential, signal: AbortSignal) => Promise<boolean>,
): Promise<RemovedLogin> {
  let removed: RemovedLogin = { wasLoggedIn: false, isRevoked: false };
  await store.change(key, async (entry) => {
    if (entry === undefined) return undefined;
    // The user is logged out here, whatever the issuer answers.
    const isRevoked = await revoke(entry, AbortSignal.timeout(REVOKE_MS)).catch(() => false);
    removed = { wasLoggedIn: true, isRevoked };
    return undefined;
  });
  return removed;
}

/** What the browser brings, unless the login is cancelled or takes too long. */
export async function untilBack<T>(back: Promise<T>, signal: AbortSignal, ms: number): Promise<T> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const expired = new HeddleError("login.expired", "the browser login was not finished in time; log in again");
  const timer = setTimeout(() => reject(expired), ms);
  try {
    if (signal.aborted) stop();
    return await Promise.race([back, stopped]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
