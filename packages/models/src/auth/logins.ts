/** Logins at the issuer of `openai-codex`, with a browser or a device code, and at GitHub for Copilot. */
import { openBrowserLogin } from "./browser-login.ts";
import type { CopilotPlaces } from "./copilot.ts";
import { checkKey, type CredentialKey, type OAuthCredential } from "./credential.ts";
import { awaitDevice, DEVICE_LIFETIME_MS, REAL_CLOCK, type Clock } from "./device-login.ts";
import { credentialOf, exchangeCode, startDevice, type Issuer, type Tokens } from "./issuer.ts";
import { createLoginBook, untilBack, type LoginBook } from "./login-book.ts";
import type { CredentialStore } from "./store.ts";

/** A browser is waited for no longer than a device. */
const LIFETIME_MS = DEVICE_LIFETIME_MS;

export type StartedLogin =
  | { readonly loginId: string; readonly method: "browser"; readonly authUrl: string; readonly isManual: boolean }
  | {
      readonly loginId: string;
      readonly method: "device";
      readonly verificationUrl: string;
      readonly userCode: string;
      readonly expiresAt: string;
    };

export interface Logins extends Pick<LoginBook, "state" | "ended" | "paste" | "cancel">, AsyncDisposable {
  start(key: CredentialKey, method: "browser" | "device"): Promise<StartedLogin>;
  startCopilot(key: CredentialKey, places: CopilotPlaces): Promise<StartedLogin>;
}

export interface LoginsOptions {
  readonly store: CredentialStore;
  readonly issuer: Issuer;
  readonly ports?: readonly number[] | undefined;
  readonly clock?: Clock | undefined;
}

export function createLogins({ store, issuer, ports, clock = REAL_CLOCK }: LoginsOptions): Logins {
  const book = createLoginBook(store);
  const kept = (key: CredentialKey, tokens: Tokens): OAuthCredential => credentialOf(issuer, tokens, key, clock.now());
  return {
    ...book,
    async startCopilot(wanted, places) {
      const { awaitCopilot, startCopilotDevice } = await import("./copilot.ts");
      const key = checkKey(wanted);
      await book.clear(key);
      const device = await startCopilotDevice(places, AbortSignal.timeout(LIFETIME_MS));
      const expiresAt = new Date(clock.now() + device.lifetimeMs).toISOString();
      const loginId = book.follow(key, undefined, (signal) => awaitCopilot(places, device, { key, clock, signal }));
      const { verificationUrl, userCode } = device;
      return { loginId, method: "device", verificationUrl, userCode, expiresAt };
    },
    async start(wanted, method) {
      const key = checkKey(wanted);
      await book.clear(key);
      if (method === "device") {
        const device = await startDevice(issuer, AbortSignal.timeout(LIFETIME_MS));
        const expiresAt = new Date(clock.now() + LIFETIME_MS).toISOString();
        const loginId = book.follow(key, undefined, async (signal) =>
          kept(key, await awaitDevice(issuer, device, { clock, signal })),
        );
        const { verificationUrl, userCode } = device;
        return { loginId, method, verificationUrl, userCode, expiresAt };
      }
      const browser = await openBrowserLogin(issuer, ports);
      const loginId = book.follow(key, browser, async (signal) => {
        const grant = await untilBack(browser.granted, signal, LIFETIME_MS);
        return kept(key, await exchangeCode(issuer, grant, signal));
      });
      return { loginId, method, authUrl: browser.authUrl, isManual: browser.isManual };
    },
  };
}
