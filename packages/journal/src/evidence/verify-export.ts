/**
 * Checks an export without a store: chains, bodies, signatures, that no line is missing or changed, and that what it says
 * makes sense and stayed inside its envelopes. It proves that the holder
 * of the key in the header signed these heads; whether that key is the right one only the reader knows.
 */
import { createHash, type Hash } from "node:crypto";
import { HeddleError, jsonProblem, reasonOf } from "@heddle/protocol";
import { genesisOf } from "../record/chain.ts";
import { isSignedBy, toCheckpoint, type Checkpoint } from "./checkpoints.ts";
import { FORMAT, FORMAT_VERSION, FORMAT_WITH_BLOBS } from "./export.ts";
import type { Damage } from "../journal.ts";
import { verifierOf, type Verifier } from "./keys.ts";
import { integer, optionalText, text, wrongKind, type Row } from "../record/rows.ts";
import { toEntry } from "./replay-entry.ts";
import { finding, type Finding } from "../replay/findings.ts";
import { createReplay, type ReplayReport } from "../replay/replay.ts";
import { checkLink } from "./check-link.ts";
import { isSealed } from "./seal.ts";
import { bodyGone, MAX_REPORTED } from "./walk.ts";

export interface ExportReport {
  readonly thread: string | undefined;
  /** Threads and tasks it was made for. */
  readonly subjects: readonly string[];
  /** Compare it with what you know of that home. undefined: nothing is signed. */
  readonly keyId: string | undefined;
  readonly publicKey: string | undefined;
  readonly events: number;
  readonly streams: number;
  readonly checkpoints: number;
  /** Streams whose last events no signature covers: whoever passed the export on may have written them. */
  readonly unsigned: readonly UnsignedEnd[];
  /** A signature covers all lines; the first version of the format has none, so that its end may be missing. */
  readonly isSealed: boolean;
  /** Whole outputs in it, and those that are not what their name says. */
  readonly blobs: number;
  readonly blobFindings: readonly Finding[];
  /** Events whose content was purged, on record, before it was exported. */
  readonly purged: number;
  readonly damage: readonly Damage[];
  readonly replay: ReplayReport;
}

export interface VerifyExportOptions {
  /** Instead of the one in the header. */
  readonly publicKey?: string;
}

export interface UnsignedEnd {
  readonly stream: string;
  /** The last event that a signature covers, with all before it; 0: none. */
  readonly signedTo: number;
  readonly lastVersion: number;
}

/** With or without newlines; only one line is held at a time. */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  options: VerifyExportOptions = {},
): Promise<ExportReport> {
  const damage: Damage[] = [];
  const report = (found: Damage | undefined): void => {
    if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
  };
  const reader = new Reader(report, options);
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    try {
      reader.take(toRow(line), line);
    } catch (error) {
      const why = reasonOf(error);
      report({ kind: "file-corrupt", message: `line ${number} is not a line of an export: ${why}` });
    }
  }
  return { ...reader.end(), damage };
}

type Report = (found: Damage | undefined) => void;

/** header ─▶ { stream ─▶ checkpoint* ─▶ event* }* ─▶ blob* ─▶ end */
class Reader {
  readonly #report: Report;
  readonly #count = { events: 0, streams: 0, checkpoints: 0, purged: 0, blobs: 0 };
  readonly #blobFindings: Finding[] = [];
  #blob: { readonly name: string; readonly hash: Hash } | undefined;
  readonly #unsigned: UnsignedEnd[] = [];
  readonly #replay = createReplay();
  readonly #digest = createHash("sha256");
  #version: number = FORMAT_VERSION;
  #thread: string | undefined;
  #left: Set<string> = new Set();
  #subjects: readonly string[] = [];
  #publicKey: string | undefined;
  #key: Verifier | undefined;
  #isSigned = false;
  #isSealed = false;
  #walk: Walk | undefined;
  #isEnded = false;

  constructor(report: Report, { publicKey }: VerifyExportOptions) {
    this.#report = report;
    this.#use(publicKey);
  }

  take(row: Row, line: string): void {
    const kind = text(row, "kind");
    if (this.#isEnded || (this.#thread === undefined) !== (kind === "header")) throw wrongKind("place");
    if (kind === "end") return this.#end(row);
    this.#digest.update(line.endsWith("\n") ? line : `${line}\n`);
    switch (kind) {
      case "header":
        return this.#header(row);
      case "stream":
        return this.#stream(row);
      case "checkpoint":
        this.#count.checkpoints += 1;
        return this.#current().checkpoint(row, this.#key);
      case "blob":
        if (this.#version !== FORMAT_WITH_BLOBS) throw wrongKind("kind");
        return this.#takeBlob(row);
      case "event":
        if (this.#count.blobs > 0 || this.#blob !== undefined) throw wrongKind("place");
        this.#count.events += 1;
        this.#current().event(row);
        return this.#replay.take(toEntry(row, row["body"] === null));
      default:
        throw wrongKind("kind");
    }
  }

  end(): Omit<ExportReport, "damage"> {
    this.#endStream();
    if (!this.#isEnded) this.#report({ kind: "tail-lost", message: "lines of the export are missing, or its end is" });
    // A key that has signed nothing here proves nothing.
    const signer = this.#isSigned
      ? { keyId: this.#key?.keyId, publicKey: this.#publicKey }
      : { keyId: undefined, publicKey: undefined };
    const [thread, subjects, replay] = [this.#thread, this.#subjects, this.#replay.end()];
    return {
      thread,
      subjects,
      ...signer,
      ...this.#count,
      unsigned: this.#unsigned,
      isSealed: this.#isSealed,
      blobFindings: this.#blobFindings,
      replay,
    };
  }

  /** In pieces, one line for each. */
  #takeBlob(row: Row): void {
    const name = text(row, "sha256");
    this.#blob ??= { name, hash: createHash("sha256") };
    if (this.#blob.name !== name) throw wrongKind("blob");
    this.#blob.hash.update(Buffer.from(text(row, "data"), "base64"));
    if (row["isLast"] !== true) return;
    const isWhole = this.#blob.hash.digest("hex") === name;
    this.#blob = undefined;
    this.#count.blobs += 1;
    if (isWhole || this.#blobFindings.length === MAX_REPORTED) return;
    this.#blobFindings.push(finding("blob_altered", `the whole output ${name} has another content`));
  }

  #use(publicKey: string | undefined): void {
    if (publicKey === undefined) return;
    try {
      this.#key = verifierOf(publicKey);
    } catch (cause) {
      throw new HeddleError("usage.invalid", "this is not a public key in PEM form", { cause });
    }
    this.#publicKey = publicKey;
  }

  #header(row: Row): void {
    const version = integer(row, "v");
    if (text(row, "format") !== FORMAT || version < 1 || version > FORMAT_WITH_BLOBS) throw wrongKind("format");
    this.#version = version;
    this.#thread = text(row, "thread");
    this.#subjects = version === 1 ? [this.#thread] : subjectsIn(row);
    this.#left = new Set(this.#subjects);
    const pem = row["publicKey"];
    if (typeof pem === "string" && this.#key === undefined) this.#use(pem);
  }

  #stream(row: Row): void {
    this.#endStream();
    const stream = text(row, "stream");
    // The first version cut only what a fork began with.
    const isCut = this.#version === 1 ? stream !== this.#thread : row["isCut"] === true;
    this.#walk = createWalk(stream, { lastVersion: integer(row, "lastVersion"), isCut, report: this.#report });
    this.#left.delete(stream);
    this.#count.streams += 1;
  }

  #endStream(): void {
    const walk = this.#walk;
    this.#walk = undefined;
    const found = walk?.end();
    if (walk === undefined || found === undefined) return;
    this.#count.purged += found.purged;
    if (walk.isCut) this.#replay.cut(walk.stream);
    this.#isSigned ||= found.end.signedTo > 0;
    const { signedTo, lastVersion } = found.end;
    if (signedTo < lastVersion && this.#unsigned.length < MAX_REPORTED) this.#unsigned.push(found.end);
  }

  #end(row: Row): void {
    const last = this.#walk?.stream;
    this.#endStream();
    if (this.#blob !== undefined) this.#corrupt(`the whole output ${this.#blob.name} is cut`);
    if (last !== this.#thread) this.#corrupt(`its last stream is not that of ${this.#thread}`);
    for (const subject of this.#left) this.#corrupt(`it was made for ${subject} and does not hold it`);
    const { events, checkpoints } = this.#count;
    this.#isEnded = integer(row, "events") === events && integer(row, "checkpoints") === checkpoints;
    // Whoever passes a bundle on can call it one of the first version: it proves no more than that one did.
    if (this.#version === 1) return;
    const sha256 = this.#digest.digest("hex");
    if (text(row, "sha256") !== sha256) return this.#corrupt("its lines are not those that its end names");
    const signature = optionalText(row, "signature");
    if (signature === undefined || this.#key === undefined) return;
    this.#isSealed = true;
    if (isSealed(this.#key, sha256, signature)) return;
    const message = "the signature over all its lines is not by the key of this export";
    this.#report({ kind: "checkpoint-forged", message });
  }

  #corrupt(message: string): void {
    this.#report({ kind: "file-corrupt", message });
  }

  #current(): Walk {
    if (this.#walk === undefined) throw wrongKind("stream before it");
    return this.#walk;
  }
}

function subjectsIn(row: Row): readonly string[] {
  const found = row["subjects"];
  if (!Array.isArray(found) || !found.every((one) => typeof one === "string")) throw wrongKind("subjects");
  return found;
}

interface Walk {
  readonly stream: string;
  readonly isCut: boolean;
  checkpoint(row: Row, key: Verifier | undefined): void;
  event(row: Row): void;
  end(): { readonly end: UnsignedEnd; readonly purged: number };
}

interface WalkOptions {
  readonly lastVersion: number;
  readonly isCut: boolean;
  readonly report: Report;
}

/** Events that say that contents before them were purged. */
const PURGES: ReadonlySet<string> = new Set(["thread.deleted", "evidence.purged"]);

/** One stream: how far its chain has come, and the checkpoints that are still due. */
function createWalk(stream: string, { lastVersion, isCut, report }: WalkOptions): Walk {
  const due = new Map<number, Checkpoint>();
  let head = { version: 0, hash: genesisOf(stream) };
  let signedTo = 0;
  /** Events without content, until one explains them. */
  let open: { readonly version: number; readonly position: number }[] = [];
  let purged = 0;
  return {
    stream,
    isCut,
    checkpoint(row, key) {
      const found = toCheckpoint(row);
      if (found?.stream !== stream) throw wrongKind("checkpoint");
      if (key !== undefined && isSignedBy(found, key)) {
        const earlier = due.get(found.version);
        if (earlier !== undefined && earlier.hash !== found.hash) throw wrongKind("checkpoint");
        due.set(found.version, found);
        return;
      }
      const message = `the checkpoint at event ${found.version} of ${stream} is not signed by the key of this export`;
      report({ kind: "checkpoint-forged", message, stream, version: found.version });
    },
    event(row) {
      if (text(row, "stream") !== stream) throw wrongKind("stream");
      const [at, position] = [integer(row, "version"), integer(row, "position")];
      if (optionalText(row, "body") === undefined) open.push({ version: at, position });
      else if (PURGES.has(text(row, "type"))) {
        purged += open.length;
        open = [];
      }
      report(checkLink(row, head));
      head = { version: integer(row, "version"), hash: text(row, "hash") };
      const { version, hash } = head;
      const signed = due.get(version);
      due.delete(version);
      if (signed?.hash === hash) signedTo = version;
      if (signed === undefined || signed.hash === hash) return;
      const message = `event ${version} of ${stream} is not the one its checkpoint signed`;
      report({ kind: "checkpoint-mismatch", message, stream, version, by: "checkpoint" });
    },
    end() {
      for (const missing of open) report(bodyGone({ stream, ...missing }));
      const signed = [...due.keys()].reduce((last, version) => Math.max(last, version), 0);
      const promised = Math.max(signed, lastVersion);
      if (head.version < promised) {
        const message = `${stream} ends at event ${head.version}, but ${promised} is promised`;
        const by = signed > head.version ? { by: "checkpoint" as const } : {};
        report({ kind: "tail-lost", message, stream, version: head.version + 1, ...by });
      }
      return { end: { stream, signedTo, lastVersion: head.version }, purged };
    },
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new HeddleError("store.damaged", `it is not JSON (${jsonProblem(line)})`, { cause });
  }
}

/** One flat object of texts, numbers and nulls, like a row; but for the list of subjects, and marks. */
function toRow(line: string): Row {
  const value = parsed(line);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrongKind("object");
  const row: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    const isOfHeader = name === "subjects" || name === "isCut" || name === "isLast";
    if (!isOfHeader && typeof field !== "string" && typeof field !== "number" && field !== null) throw wrongKind(name);
    row[name] = field;
  }
  return row;
}
