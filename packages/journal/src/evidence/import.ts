/**
 * Takes over the entries of a bundle that another home has signed: verified first, from a key that the owner trusts, each
 * once, into streams of their own, where no thread can run. What was verified and what is taken over are the same bytes: the
 * caller gives a file that nobody else writes.
 */
import {
  EvidenceRef,
  EvidenceTag,
  HeddleError,
  readAuthor,
  type Author,
  type EventBody,
  type EventOf,
} from "@heddle/protocol";
import { checkEvent } from "@heddle/protocol/check-event";
import { keepBlob } from "../blobs/blob-files.ts";
import { pathsOf } from "../home.ts";
import type { Journal } from "../journal.ts";
import { entryFacts } from "../projections/evidence-entry.ts";
import { integer, optionalText, text, type Row } from "../record/rows.ts";
import { importStream } from "./import-stream.ts";
import { loadPublicKey } from "./keys.ts";
import { addKnownKey, knownKeysFile, readKnownKeys } from "./known-keys.ts";
import { verifyExport, type ExportReport } from "./verify-export.ts";

/** Events of one append: a few milliseconds. */
const BATCH = 100;
/** A whole event that is longer is not taken over; what it says for others is. */
const MAX_BODY_CHARS = 256 * 1024;
/** What a home keeps of one command, and a little more. */
const MAX_BLOB_BYTES = 65 * 1024 * 1024;
const MAX_REFS = 64;
const MAX_TAGS = 32;
const PAGE = 1_000;

export interface ImportOptions {
  readonly home: string;
  readonly by: Author;
  /** The id of the key, or the key in PEM form, that the owner trusts from now on. */
  readonly trust?: string | undefined;
}

export interface ImportReport {
  readonly keyId: string;
  /** Where the entries are now. */
  readonly streams: readonly string[];
  readonly imported: number;
  /** Taken over before. */
  readonly known: number;
  /** Events whose form this version does not know. */
  readonly unread: number;
  readonly outputs: number;
}

type Lines = () => AsyncIterable<string> | Iterable<string>;

export async function importBundle(journal: Journal, lines: Lines, options: ImportOptions): Promise<ImportReport> {
  const { home, by, trust } = options;
  const keyId = await requireTrusted(await verifyExport(lines()), { home, trust });
  const taker = createTaker(journal, { home, by, keyId });
  for await (const line of lines()) if (line.trim() !== "") await taker.take(JSON.parse(line));
  return await taker.end();
}

/** The id of the key, once it is clear that its owner signed all of it. */
async function requireTrusted(
  report: ExportReport,
  { home, trust }: Pick<ImportOptions, "home" | "trust">,
): Promise<string> {
  const { keyId, publicKey, damage, blobFindings, unsigned, isSealed, thread } = report;
  if (thread === undefined) throw new HeddleError("usage.invalid", "this is not a bundle of heddle evidence export");
  const [changed] = [...damage, ...blobFindings];
  if (changed !== undefined)
    throw new HeddleError("evidence.tampered", `the bundle was changed after it was signed: ${changed.message}`);
  if (keyId === undefined || publicKey === undefined || !isSealed || unsigned.length > 0)
    throw new HeddleError("evidence.unproven", "not all of the bundle is signed; export it again with this version");
  const isMeant = trust === undefined || trust === keyId || trust.trim() === publicKey.trim();
  const isKnown = publicKey === loadPublicKey(pathsOf(home).keys) || readKnownKeys(home).includes(publicKey);
  if (isMeant && (isKnown || trust !== undefined)) {
    if (!isKnown) await addKnownKey(home, publicKey);
    return keyId;
  }
  const message = isMeant
    ? `the bundle is signed by key ${keyId}, which is not in ${knownKeysFile(home)}; compare it with the key of the home it came from, then import it with --trust-key ${keyId}`
    : `the bundle is signed by key ${keyId}, not by the one that --trust-key names`;
  throw new HeddleError("evidence.untrusted", message, { details: { keyId } });
}

type Imported = EventOf<"evidence.imported">;

interface Target {
  readonly name: string;
  version: number;
  /** Hashes by the version in their home. */
  readonly known: ReadonlyMap<string, string>;
}

function createTaker(journal: Journal, { home, by, keyId }: Omit<ImportOptions, "trust"> & { readonly keyId: string }) {
  const beganMs = Date.now();
  const count = { imported: 0, known: 0, unread: 0, outputs: 0 };
  const streams = new Set<string>();
  let target: Target | undefined;
  let waiting: Imported[] = [];
  let blob: { readonly name: string; readonly pieces: Buffer[]; bytes: number } | undefined;

  async function flush(): Promise<void> {
    if (target === undefined || waiting.length === 0) return;
    const events = waiting;
    waiting = [];
    await journal.append({ stream: target.name, author: by, events, expectedVersion: target.version });
    target.version += events.length;
    count.imported += events.length;
    streams.add(target.name);
  }

  async function takeEvent(row: Row): Promise<void> {
    const entry = entryOf(row, keyId, () => (count.unread += 1));
    if (entry === undefined || target === undefined) return;
    const known = target.known.get(keyOf(entry.origin));
    if (known === undefined) {
      waiting.push(entry);
      if (waiting.length >= BATCH) await flush();
      return;
    }
    if (known !== entry.origin.hash) throw otherPast(entry);
    count.known += 1;
    streams.add(target.name);
  }

  async function takeBlob(row: Row): Promise<void> {
    blob ??= { name: text(row, "sha256"), pieces: [], bytes: 0 };
    const piece = Buffer.from(text(row, "data"), "base64");
    blob.bytes += piece.length;
    if (blob.bytes <= MAX_BLOB_BYTES) blob.pieces.push(piece);
    if (row["isLast"] !== true) return;
    const { name, pieces, bytes } = blob;
    blob = undefined;
    if (bytes <= MAX_BLOB_BYTES && (await keepBlob(home, name, { pieces, mtimeMs: beganMs }))) count.outputs += 1;
  }

  return {
    async take(row: Row): Promise<void> {
      switch (row["kind"]) {
        case "stream":
          await flush();
          target = await targetOf(journal, keyId, text(row, "stream"));
          return;
        case "event":
          return await takeEvent(row);
        case "blob":
          await flush();
          return await takeBlob(row);
        default:
          return;
      }
    },
    async end(): Promise<ImportReport> {
      await flush();
      return { keyId, streams: [...streams], ...count };
    },
  };
}

async function targetOf(journal: Journal, keyId: string, origin: string): Promise<Target> {
  let name = importStream(keyId, origin, 0);
  for (let attempt = 1; await journal.threads.isDeleted(name); attempt += 1)
    name = importStream(keyId, origin, attempt);
  const known = new Map<string, string>();
  const version = await journal.version(name);
  for (let cursor: string | undefined, isMore = version > 0; isMore; isMore = cursor !== undefined) {
    const query = { thread: name, origin: "imported", limit: PAGE } as const;
    const page = await journal.evidence.query(cursor === undefined ? query : { ...query, cursor });
    for (const { imported } of page.entries) if (imported !== undefined) known.set(keyOf(imported), imported.hash);
    cursor = page.next;
  }
  return { name, version, known };
}

function keyOf({ stream, version }: Pick<Imported["origin"], "stream" | "version">): string {
  return `${version} ${stream}`;
}

/** undefined: it is no entry. */
function entryOf(row: Row, keyId: string, unread: () => void): Imported | undefined {
  const stored = optionalText(row, "body");
  if (stored === undefined) return undefined;
  let body: EventBody;
  try {
    body = checkEvent(JSON.parse(stored));
  } catch {
    // Of a later version, or of a program that is not Heddle.
    unread();
    return undefined;
  }
  // What a home has imported itself is not its own to hand on.
  if (body.type === "evidence.imported") return undefined;
  const stream = text(row, "stream");
  const author = readAuthor(text(row, "author"));
  const facts = author === undefined ? undefined : entryFacts({ stream, body, author });
  if (facts === undefined) return undefined;
  const origin = {
    keyId,
    stream,
    version: integer(row, "version"),
    id: text(row, "id"),
    at: integer(row, "at"),
    author: text(row, "author"),
    type: text(row, "type"),
    hash: text(row, "hash"),
  };
  return {
    type: "evidence.imported",
    v: 1,
    origin,
    claim: facts.claim,
    subject: facts.subject,
    refs: facts.refs.filter((ref) => EvidenceRef.safeParse(ref).success).slice(0, MAX_REFS),
    tags: [...new Set(facts.tags)].filter((tag) => EvidenceTag.safeParse(tag).success).slice(0, MAX_TAGS),
    text: facts.text,
    ...(stored.length > MAX_BODY_CHARS ? {} : { body }),
  };
}

function otherPast({ origin }: Imported): HeddleError {
  const { keyId, stream, version } = origin;
  const message = `key ${keyId} has signed two different histories of ${stream}: event ${version} was imported with another hash before. Nothing more was imported; heddle evidence purge removes what was imported`;
  return new HeddleError("evidence.tampered", message, { details: { stream, version } });
}
