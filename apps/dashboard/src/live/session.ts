/**
 * Who this browser acts for. The token of a browser is bound to scheme, host and port by `localStorage` and goes out as
 * `Authorization` only; a cookie would be sent to every port of this machine, agents' ones too.
 */
import { HeddleApiError, HeddleClient, login } from "@heddle/client";
import { createStore } from "./store.ts";
import { watchedFetch } from "./streams.ts";

const KEY = "heddle.token";

export interface Session {
  readonly client: HeddleClient | undefined;
  /** Why there is none, where there was one. */
  readonly problem: string | undefined;
}

export const session = createStore<Session>({ client: undefined, problem: undefined });

/** From what this browser kept. */
export function resumeSession(): void {
  const token = localStorage.getItem(KEY);
  if (token !== null) begin(token);
}

/** A code of `heddle dashboard`, which works once. */
export async function loginByCode(code: string): Promise<void> {
  const { token } = await login({ url: location.origin, code, fetch: watchedFetch });
  localStorage.setItem(KEY, token);
  begin(token);
}

/** A token is exchanged for one of this browser's own, so that what was typed is kept nowhere. */
export async function loginByToken(token: string): Promise<void> {
  const { code } = await clientOf(token).access.createCode();
  await loginByCode(code);
}

export async function logout(): Promise<void> {
  const { client } = session.get();
  end(undefined);
  // The browser has forgotten it, whatever the server says.
  await client?.access.logout().catch(() => undefined);
}

/** The server knows this login no longer. */
export function expire(problem: string): void {
  if (session.get().client !== undefined) end(problem);
}

/** Of whoever is logged in; what needs it is only drawn then. */
export function api(): HeddleClient {
  const { client } = session.get();
  if (client === undefined) throw new HeddleApiError("door.unauthorized", "log in first", { status: 401 });
  return client;
}

function begin(token: string): void {
  session.set({ client: clientOf(token), problem: undefined });
}

function end(problem: string | undefined): void {
  localStorage.removeItem(KEY);
  session.set({ client: undefined, problem });
}

function clientOf(token: string): HeddleClient {
  return new HeddleClient({ url: location.origin, token, fetch: watchedFetch });
}
