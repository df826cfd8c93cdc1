/** The credential store that whoever runs Heddle has chosen. */
import { HeddleError } from "@heddle/protocol";
import { keyringVault } from "./keyring.ts";
import { openCredentialStore, type CredentialStore, type StoreOptions } from "./store.ts";

const STORE_VARIABLE = "HEDDLE_CREDENTIALS";

export interface ChosenStoreOptions extends Pick<StoreOptions, "home" | "onSecrets"> {
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function storeFor({ home, env, onSecrets }: ChosenStoreOptions): CredentialStore {
  const chosen = env[STORE_VARIABLE] || "file";
  if (chosen === "file") return openCredentialStore({ home, onSecrets });
  if (chosen === "keyring") return openCredentialStore({ home, vault: keyringVault(home, env), onSecrets });
  throw new HeddleError("config.invalid", `${STORE_VARIABLE} must be file or keyring`);
}
