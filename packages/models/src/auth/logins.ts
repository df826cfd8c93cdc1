/**
 * Logins under way. Each has an id, a state that can be asked for at any time, and exactly one end; what a client sees of it
 * is an address and perhaps a word to type, never a code or a token. A second login for the same account takes the place of
 * the first.
 */
import { randomUUID } from "node:crypto";
import { HeddleError, toHeddleError, type ErrorCode } from "@heddle/protocol";
import { openBrowserLogin, type BrowserLogin } from "./browser-login.ts";
import { checkKey, keyText, type CredentialKey } from "./credential.ts";
import { awaitDevice, DEVICE_LIFETIME_MS, REAL_CLOCK, type Clock } from "./device-login.ts";
import { credentialOf, exchangeCode, startDevice, type Issuer, type Tokens } from "./issuer.ts";
import type { CredentialStore } from "./store.ts";

/** A browser is waited for no longer than a device. */
const LIFETIME_MS = DEVICE_LIFETIME_MS;
/** Ended logins are remembered for whoever asks late. */
const MAX_REMEMBERED = 100;

export type StartedLogin =
  | { readonly loginId: string; readonly method: "browser"; readonly authUrl: string; readonly isManual: boolean }
  | {
      readonly loginId: string;
      readonly method: "device";
      readonly verificationUrl: string;
      readonly userCode: string;
      readonly expiresAt: string;
    };

export interface LoginState {
  readonly loginId: string;
  readonly provider: string;
  readonly profile: string;
  readonly status: "pending" | "completed" | "failed" | "cancelled" | "expired";
  readonly failure?: { readonly code: ErrorCode; readonly message: string };
}

export interface Logins extends AsyncDisposable {
  start(key: CredentialKey, method: "browser" | "device"): Promise<StartedLogin>;
  state(loginId: string): LoginState;
  /** Resolves with the end. */
  ended(loginId: string): Promise<LoginState>;
  /** What the browser ended at, where it could not come back by itself. */
  paste(loginId: string, text: string): void;
  /** Resolves when nothing of it goes on any more. */
  cancel(loginId: string): Promise<LoginState>;
}

export interface LoginsOptions {
  readonly store: CredentialStore;
  readonly issuer: Issuer;
  readonly ports?: readonly number[] | undefined;
  readonly clock?: Clock | undefined;
}

interface Running {
  readonly key: CredentialKey;
  readonly control: AbortController;
  readonly done: Promise<void>;
  readonly browser: BrowserLogin | undefined;
  state: LoginState;
}

export function createLogins({ store, issuer, ports, clock = REAL_CLOCK }: LoginsOptions): Logins {
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

  function follow(
    key: CredentialKey,
    browser: BrowserLogin | undefined,
    wait: (signal: AbortSignal) => Promise<Tokens>,
  ) {
    const loginId = randomUUID();
    const control = new AbortController();
    const carryOut = async (): Promise<LoginState["status"]> => {
      const tokens = await wait(control.signal);
      control.signal.throwIfAborted();
      const credential = credentialOf(issuer, tokens, key, clock.now());
      await store.change(key, () => credential, { signal: control.signal });
      return "completed";
    };
    const state: LoginState = { loginId, provider: key.provider, profile: key.profile, status: "pending" };
    const done = carryOut()
      .then(
        (status) => void (login.state = { ...state, status }),
        (error: unknown) => void (login.state = { ...state, ...failureOf(error) }),
      )
      .then(() => browser?.[Symbol.asyncDispose]());
    const login: Running = { key, control, browser, done, state };
    logins.set(loginId, login);
    forget(logins);
    return loginId;
  }

  return {
    async start(wanted, method) {
      const key = checkKey(wanted);
      const rivals = [...logins.values()].filter((login) => keyText(login.key) === keyText(key));
      await Promise.all(rivals.filter(isPending).map(end));
      if (method === "device") {
        const device = await startDevice(issuer, AbortSignal.timeout(LIFETIME_MS));
        const expiresAt = new Date(clock.now() + LIFETIME_MS).toISOString();
        const loginId = follow(key, undefined, (signal) => awaitDevice(issuer, device, { clock, signal }));
        const { verificationUrl, userCode } = device;
        return { loginId, method, verificationUrl, userCode, expiresAt };
      }
      const browser = await openBrowserLogin(issuer, ports);
      const loginId = follow(key, browser, async (signal) => {
        const grant = await orAborted(browser.granted, signal, LIFETIME_MS);
        return exchangeCode(issuer, grant, signal);
      });
      return { loginId, method, authUrl: browser.authUrl, isManual: browser.isManual };
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

async function orAborted<T>(promise: Promise<T>, signal: AbortSignal, ms: number): Promise<T> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const expired = new HeddleError("login.expired", "nobody came back from the browser in time; log in again");
  const timer = setTimeout(() => reject(expired), ms);
  try {
    if (signal.aborted) stop();
    return await Promise.race([promise, stopped]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
