/**
 * Who may come in over TCP: one file a token, which only its owner can read, with name, role and the token's hash. So two
 * that add or revoke at once cannot undo each other. The tokens themselves are shown once, when they are made; only the
 * owner's own one is kept, so that programs of the same user find it. A running server notices changes by itself.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { link, lstat, mkdir, open, readdir, readFile, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { defined, HeddleError, OWN_NAMES, reasonOf, uuidv7 } from "@heddle/protocol";
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

/** Of a browser that logged in: it acts as the principal whose code it showed, as long as that one may come in. */
const BrowserEntry = Entry.extend({
  of: z.string().regex(NAME),
  /** When that token was made. */
  since: z.number().optional(),
  agent: z.string().max(200).optional(),
});
export interface BrowserLogin extends z.infer<typeof BrowserEntry> {
  readonly lastUsedAt: number;
}

/** A browser that asked for nothing for so long, and follows nothing, has to log in again. */
export const BROWSER_IDLE_MS = 12 * 60 * 60 * 1000;
const MAX_BROWSERS = 200;
/** So that nobody uses up the logins of the others. */
const MAX_BROWSERS_OF_ONE = 50;
/** The time of last use is the time of its file; it need not be exact. */
const TOUCH_MS = 5 * 60 * 1000;

const ENDING = ".json";

function folderOf(home: string): string {
  return join(home, "tokens");
}

function browsersOf(home: string): string {
  return join(folderOf(home), "browsers");
}

export function ownerTokenPath(home: string): string {
  return join(home, "serve.token");
}

/** When the owner's token was made; undefined: there is none. One that is made anew is another. */
async function ownerTokenSince(home: string): Promise<number | undefined> {
  const found = await lstat(ownerTokenPath(home)).catch(() => undefined);
  return found === undefined ? undefined : Math.trunc(found.mtimeMs);
}

/** By name. */
export async function listTokens(home: string): Promise<readonly TokenEntry[]> {
  const entries = await Promise.all((await entryFiles(folderOf(home))).map((path) => readEntry(path, Entry)));
  return entries.filter((entry) => entry !== undefined).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Browsers that are logged in now, by name. */
export async function listBrowsers(home: string): Promise<readonly BrowserLogin[]> {
  const tokens = await listTokens(home);
  const ownSince = await ownerTokenSince(home);
  const mayComeIn = ({ of, role, since }: BrowserLogin): boolean =>
    of === LOCAL_OWNER.name && role === LOCAL_OWNER.role
      ? since === ownSince
      : tokens.some((token) => token.name === of && token.role === role && token.createdAt === since);
  const logins = await Promise.all((await entryFiles(browsersOf(home))).map(readBrowser));
  return logins
    .filter((login) => login !== undefined)
    .filter((login) => Date.now() - login.lastUsedAt < BROWSER_IDLE_MS && mayComeIn(login))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

async function readBrowser(path: string): Promise<BrowserLogin | undefined> {
  const entry = await readEntry(path, BrowserEntry);
  const stats = await lstat(path).catch(() => undefined);
  return entry === undefined || stats === undefined ? undefined : { ...entry, lastUsedAt: Math.trunc(stats.mtimeMs) };
}

async function entryFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isCode(error, "ENOENT")) return [];
    throw new HeddleError("store.failed", `${folder} cannot be read`, { cause: error });
  });
  return names.filter((name) => name.endsWith(ENDING) && !name.startsWith(".")).map((name) => join(folder, name));
}

/** undefined: revoked since it was listed. */
async function readEntry<T extends z.ZodType>(path: string, shape: T): Promise<z.output<T> | undefined> {
  const text = await readPrivate(path);
  if (text === undefined) return undefined;
  try {
    return shape.parse(JSON.parse(text));
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

/** Answers the token of a browser, which acts as this principal from now on, and the name it is listed by. */
export async function addBrowser(
  home: string,
  { name: of, role, since: made, agent }: Principal & { readonly agent: string | undefined },
): Promise<{ readonly token: string; readonly name: string }> {
  const since = made ?? (await ownerTokenSince(home));
  const files = await entryFiles(browsersOf(home));
  const logins = await listBrowsers(home);
  const current = new Set(logins.map(({ name }) => `${name}${ENDING}`));
  for (const file of files) if (!current.has(basename(file))) await rm(file, { force: true });
  const own = logins.filter((login) => login.of === of).length;
  // Who can revoke them is not kept out by them.
  const mayBeMore = role === "owner" || logins.length < MAX_BROWSERS;
  if (!mayBeMore || own >= MAX_BROWSERS_OF_ONE) {
    const count = mayBeMore ? `${own} browsers of ${of}` : `${logins.length} browsers`;
    throw new HeddleError("limit.reached", `${count} are logged in; revoke some: heddle token list`);
  }
  const token = newToken();
  const name = `browser-${randomBytes(6).toString("hex")}`;
  const more = defined({ since, agent: agent?.slice(0, 200) });
  const entry = { version: 1, name, role, of, sha256: hashOf(token), createdAt: Date.now(), ...more } as const;
  await mkdir(browsersOf(home), { recursive: true, mode: 0o700 });
  await writeNew(join(browsersOf(home), `${name}${ENDING}`), entry);
  return { token, name };
}

/** False: there was none of that name and role. */
export async function revokeToken(home: string, { name, role }: Principal): Promise<boolean> {
  const isOf = (token: TokenEntry): boolean => token.name === name && token.role === role;
  const isThere = (await listTokens(home)).some(isOf);
  if (isThere) await rm(join(folderOf(home), `${name}${ENDING}`), { force: true });
  const isBrowser = (await listBrowsers(home)).some(isOf);
  if (isBrowser) await rm(join(browsersOf(home), `${name}${ENDING}`), { force: true });
  return isThere || isBrowser;
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
  /** What was added or revoked in this process counts from the next request on. */
  changed(): void;
}

interface OwnToken {
  readonly token: string;
  /** Where it is kept: without this file it is revoked. Absent: it is kept nowhere. */
  readonly file?: string;
}

/** While the list cannot be read, the owner alone is let in. */
export function openTokenBook(home: string, own: OwnToken, log: (line: string) => void): TokenBook {
  const owner = { ...LOCAL_OWNER, digest: createHash("sha256").update(own.token).digest() };
  let known: readonly (Principal & { readonly digest: Buffer; lastUsedAt?: number })[] = [owner];
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  let changes = 0;

  async function look(): Promise<void> {
    const seen = changes;
    const onlyOwner = (error: unknown): [] => {
      log(`only the owner has access: ${reasonOf(error)}`);
      return [];
    };
    const listed = await listTokens(home).catch(onlyOwner);
    const browsers = await listBrowsers(home).catch(onlyOwner);
    known = [
      ...((await isKept(own)) ? [owner] : []),
      ...listed.map(({ name, role, sha256, createdAt: since }) => {
        return { name, role, since, digest: Buffer.from(sha256, "hex") };
      }),
      ...browsers.map(({ name: browser, of: name, role, since, sha256, lastUsedAt }) => {
        return { name, role, browser, ...defined({ since }), digest: Buffer.from(sha256, "hex"), lastUsedAt };
      }),
    ];
    // What changed meanwhile may have been passed over.
    if (seen === changes) lookedAt = performance.now();
  }

  async function fresh(): Promise<typeof known> {
    while (performance.now() - lookedAt > LOOK_AGAIN_MS) {
      looking ??= look().finally(() => {
        looking = undefined;
      });
      await looking;
    }
    return known;
  }

  async function touch(entry: (typeof known)[number]): Promise<void> {
    const { browser, lastUsedAt = 0 } = entry;
    const now = Date.now();
    if (browser === undefined || now - lastUsedAt < TOUCH_MS) return;
    entry.lastUsedAt = now;
    // One that was revoked meanwhile is not there.
    await utimes(join(browsersOf(home), `${browser}${ENDING}`), now / 1000, now / 1000).catch(() => undefined);
  }

  return {
    async principalOf(token) {
      const shown = createHash("sha256").update(token).digest();
      let found: (typeof known)[number] | undefined;
      // All of them, also after one has fitted.
      for (const other of await fresh()) if (timingSafeEqual(other.digest, shown)) found = other;
      if (found === undefined) return undefined;
      await touch(found);
      const { name, role, browser, since } = found;
      return { name, role, ...defined({ browser, since }) };
    },
    async isStillGood({ name, role, browser, since }) {
      const found = (await fresh()).find(
        (other) => other.name === name && other.role === role && other.browser === browser && other.since === since,
      );
      if (found !== undefined) await touch(found);
      return found !== undefined;
    },
    changed() {
      changes += 1;
      lookedAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** What replaced it is for the next server. */
async function isKept({ token, file }: OwnToken): Promise<boolean> {
  if (file === undefined) return true;
  try {
    return (await readFile(file, "utf8")).trim() === token;
  } catch (error) {
    return !isCode(error, "ENOENT");
  }
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
async function writeNew(path: string, entry: object): Promise<boolean> {
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
