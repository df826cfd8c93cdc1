/**
 * Stores credentials: `credentials.json` in Heddle's home, or the keyring of the desktop, behind one interface. Every change
 * reads again under the lock and replaces the whole document, so that no change is lost and no reader sees half.
 */
import { lstatSync } from "node:fs";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import {
  checkKey,
  documentText,
  keyText,
  parseDocument,
  sameKey,
  secretsOf,
  type Credential,
  type CredentialKey,
} from "./credential.ts";
import { CREDENTIALS_FILE } from "./credentials-file.ts";
import { acquireLock } from "./lock.ts";
import { openPrivateFolder, type PrivateFolder } from "./private-folder.ts";

const LOCK = "credentials.lock";
/** A holder may be refreshing a token: three tries with their pauses. */
const LOCK_WAIT_MS = 60_000;

/** Stores one text; locks and meaning are the same for all back-ends. */
export interface Vault {
  /** For messages. */
  readonly location: string;
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

export interface CredentialStore {
  readonly location: string;
  get(key: CredentialKey): Promise<Credential | undefined>;
  list(): Promise<readonly Credential[]>;
  /**
   * Runs `decide` under the lock with the entry as it is now, and keeps what it returns; undefined removes the entry. What it
   * throws is passed on and nothing is written.
   */
  change(
    key: CredentialKey,
    decide: (current: Credential | undefined) => Promise<Credential | undefined> | Credential | undefined,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Credential | undefined>;
}

export interface StoreOptions {
  readonly home: string;
  readonly lockWaitMs?: number;
  /** Instead of the file. The lock stays in the home. */
  readonly vault?: Vault;
  /** Gets every secret that is stored or read, before it is used. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
}

export function openCredentialStore(options: StoreOptions): CredentialStore {
  const { home, vault = fileVault(home), lockWaitMs, onSecrets } = options;
  const entries = async (): Promise<readonly Credential[]> => {
    const text = await vault.read();
    const found = text === undefined ? [] : parseDocument(text, vault.location);
    onSecrets?.(found.flatMap(secretsOf));
    return found;
  };
  return {
    location: vault.location,
    list: entries,
    async get(key) {
      const wanted = checkKey(key);
      return (await entries()).find((entry) => sameKey(entry, wanted));
    },
    async change(key, decide, { signal } = {}) {
      const wanted = checkKey(key);
      using folder = openPrivateFolder(home);
      folder.touch(LOCK);
      using _lock = await acquireLock(folder.at(LOCK), {
        waitMs: lockWaitMs ?? LOCK_WAIT_MS,
        signal,
        shown: path.join(home, LOCK),
      });
      const before = await entries();
      const current = before.find((entry) => sameKey(entry, wanted));
      const next = await decide(current);
      if (next === current) return current;
      if (next !== undefined && !sameKey(next, wanted)) {
        throw new HeddleError("internal", `a credential of ${keyText(next)} was to be stored as ${keyText(wanted)}`);
      }
      if (next !== undefined) onSecrets?.(secretsOf(next));
      const others = before.filter((entry) => entry !== current);
      await vault.write(documentText(next === undefined ? others : [...others, next]));
      return next;
    },
  };
}

function fileVault(home: string): Vault {
  return {
    location: path.join(home, CREDENTIALS_FILE),
    async read() {
      using folder = existingFolder(home);
      return folder?.read(CREDENTIALS_FILE);
    },
    async write(text) {
      using folder = openPrivateFolder(home);
      folder.write(CREDENTIALS_FILE, text);
    },
  };
}

/** A home without credentials may be open to others. */
function existingFolder(home: string): PrivateFolder | undefined {
  return hasEntry(path.join(home, CREDENTIALS_FILE)) ? openPrivateFolder(home) : undefined;
}

function hasEntry(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // Opening it reports what is wrong.
    return true;
  }
}
