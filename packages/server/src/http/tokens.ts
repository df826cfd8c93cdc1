/**
 * Who may come in over TCP: one file a token, which only its owner can read, with name, role and the token's hash. So two
 * that add or revoke at once cannot undo each other. The tokens themselves are shown once, when they are made; only the
 * owner's own one is kept, so that programs of the same user find it. A running server notices changes by itself.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { link, lstat, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HeddleError, OWN_NAMES, reasonOf, uuidv7 } from "@heddle/protocol";
import { z } from "zod";
import { LOCAL_OWNER, ROLES, type Principal } from "../access/principals.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_TOKENS = 1_000;
const MAX_FILE_BYTES = 4096;
/** How old the server's view of the file may be. */
const LOOK_AGAIN_MS = 500;

const Entry = z.strictObject({
  version: z.literal(1),
  name: z.string().regex(NAME),
  role: z.enum(ROLES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  createdAt: z.number(),
});
export type TokenEntry = z.infer<typeof Entry>;

const ENDING = ".json";

function folderOf(home: string): string {
  return join(home, "tokens");
}

export function ownerTokenPath(home: string): string {
  return join(home, "serve.token");
}

/** By name. */
export async function listTokens(home: string): Promise<readonly TokenEntry[]> {
  const names = await readdir(folderOf(home)).catch((error: unknown) => {
    if (isCode(error, "ENOENT")) return [];
    throw new HeddleError("store.failed", `${folderOf(home)} cannot be read`, { cause: error });
  });
  const files = names.filter((name) => name.endsWith(ENDING) && !name.startsWith("."));
  const entries = await Promise.all(files.map((name) => readEntry(join(folderOf(home), name))));
  return entries.filter((entry) => entry !== undefined).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** undefined: revoked since it was listed. */
async function readEntry(path: string): Promise<TokenEntry | undefined> {
  const text = await readPrivate(path);
  if (text === undefined) return undefined;
  try {
    return Entry.parse(JSON.parse(text));
  } catch (cause) {
    throw new HeddleError("credentials.unsafe", `${path} does not describe a token; remove it`, { cause });
  }
}

/** Answers the token; it cannot be shown again. */
export async function addToken(home: string, { name, role }: Principal): Promise<string> {
  if (!NAME.test(name)) {
    throw new HeddleError("usage.invalid", "a name is 1 to 64 letters, digits, dots, dashes and underscores");
  }
  if ((await listTokens(home)).length >= MAX_TOKENS) {
    throw new HeddleError("limit.reached", `there are ${MAX_TOKENS} tokens already; revoke some`);
  }
  const token = newToken();
  const entry: TokenEntry = { version: 1, name, role, sha256: hashOf(token), createdAt: Date.now() };
  await mkdir(folderOf(home), { recursive: true, mode: 0o700 });
  if (OWN_NAMES.has(name) || !(await writeNew(join(folderOf(home), `${name}${ENDING}`), entry))) {
    throw new HeddleError("usage.invalid", `there is a token named ${name}; revoke it first, or take another name`);
  }
  return token;
}

/** False: there was none of that name and role. */
export async function revokeToken(home: string, { name, role }: Principal): Promise<boolean> {
  const isThere = (await listTokens(home)).some((token) => token.name === name && token.role === role);
  if (isThere) await rm(join(folderOf(home), `${name}${ENDING}`), { force: true });
  return isThere;
}

/** The token of the user who runs the server; created when missing. */
export async function ensureOwnerToken(home: string): Promise<OwnerToken> {
  const path = ownerTokenPath(home);
  let isNew = true;
  try {
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(`${newToken()}\n`);
    await file.sync();
  } catch (error) {
    if (!isCode(error, "EEXIST")) {
      throw new HeddleError("store.failed", `the token file ${path} could not be created`, { cause: error });
    }
    isNew = false;
  }
  const token = (await readPrivate(path))?.trim() ?? "";
  if (token.length < 32) throw new HeddleError("credentials.unsafe", `${path} holds no token; remove it`);
  return { token, isNew };
}

export interface OwnerToken {
  readonly token: string;
  /** Made now. */
  readonly isNew: boolean;
}

export interface TokenBook {
  /** Takes the same time whatever tokens exist. */
  principalOf(token: string): Promise<Principal | undefined>;
  /** Whether the token of a principal is still valid. */
  isStillGood(principal: Principal): Promise<boolean>;
}

/** While the list cannot be read, the owner alone is let in. */
export function openTokenBook(home: string, ownerToken: string, log: (line: string) => void): TokenBook {
  const owner = { ...LOCAL_OWNER, digest: createHash("sha256").update(ownerToken).digest() };
  let known: readonly (Principal & { readonly digest: Buffer })[] = [owner];
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;

  async function look(): Promise<void> {
    const listed = await listTokens(home).catch((error: unknown) => {
      log(`only the owner has access: ${reasonOf(error)}`);
      return [];
    });
    known = [owner, ...listed.map(({ name, role, sha256 }) => ({ name, role, digest: Buffer.from(sha256, "hex") }))];
    lookedAt = performance.now();
  }

  async function fresh(): Promise<typeof known> {
    if (performance.now() - lookedAt > LOOK_AGAIN_MS) {
      looking ??= look().finally(() => {
        looking = undefined;
      });
      await looking;
    }
    return known;
  }

  return {
    async principalOf(token) {
      const shown = createHash("sha256").update(token).digest();
      let found: Principal | undefined;
      // All of them, also after one has fitted.
      for (const { name, role, digest } of await fresh()) if (timingSafeEqual(digest, shown)) found = { name, role };
      return found;
    },
    async isStillGood({ name, role }) {
      return (await fresh()).some((other) => other.name === name && other.role === role);
    },
  };
}

function newToken(): string {
  return randomBytes(32).toString("base64url");
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** undefined: it does not exist. A file that others could read or replace is refused. */
async function readPrivate(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!found.isFile() || found.size > MAX_FILE_BYTES) {
    throw new HeddleError("credentials.unsafe", `${path} is not a small regular file`);
  }
  if ((found.mode & 0o077) !== 0) {
    throw new HeddleError("credentials.unsafe", `${path} can be read by others; run chmod 600 ${path}`);
  }
  return readFile(path, "utf8");
}

/** The name appears with its whole content. False: it is taken. */
async function writeNew(path: string, entry: TokenEntry): Promise<boolean> {
  const draft = join(dirname(path), `.${uuidv7()}`);
  try {
    await using file = await open(draft, "wx", 0o600);
    await file.writeFile(`${JSON.stringify(entry)}\n`);
    await file.sync();
    await link(draft, path);
    return true;
  } catch (error) {
    if (isCode(error, "EEXIST")) return false;
    throw new HeddleError("store.failed", `${path} could not be written`, { cause: error });
  } finally {
    await rm(draft, { force: true });
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
