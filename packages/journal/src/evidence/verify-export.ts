/**
 * Checks an export without a store: chains, bodies, signatures, and that no line is missing. It proves that the holder
 * of the key in the header signed these heads; whether that key is the right one only the reader knows.
 */
import { HeddleError, jsonProblem, reasonOf } from "@heddle/protocol";
import { genesisOf } from "../record/chain.ts";
import { isSignedBy, toCheckpoint, type Checkpoint } from "./checkpoints.ts";
import { FORMAT, FORMAT_VERSION } from "./export.ts";
import type { Damage } from "../journal.ts";
import { verifierOf, type Verifier } from "./keys.ts";
import { integer, text, wrongKind, type Row } from "../record/rows.ts";
import { checkLink } from "./check-link.ts";
import { MAX_REPORTED } from "./walk.ts";

export interface ExportReport {
  readonly thread: string | undefined;
  /** Compare it with what you know of that home. undefined: nothing is signed. */
  readonly keyId: string | undefined;
  readonly publicKey: string | undefined;
  readonly events: number;
  readonly streams: number;
  readonly checkpoints: number;
  /** Streams whose last events no signature covers: whoever passed the export on may have written them. */
  readonly unsigned: readonly UnsignedEnd[];
  readonly damage: readonly Damage[];
}

export interface UnsignedEnd {
  readonly stream: string;
  /** The last event that a signature covers, with all before it; 0: none. */
  readonly signedTo: number;
  readonly lastVersion: number;
}

/** With or without newlines; only one line is held at a time. */
export async function verifyExport(lines: AsyncIterable<string> | Iterable<string>): Promise<ExportReport> {
  const damage: Damage[] = [];
  const report = (found: Damage | undefined): void => {
    if (found !== undefined && damage.length < MAX_REPORTED) damage.push(found);
  };
  const reader = createReader(report);
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    try {
      reader.take(toRow(line));
    } catch (error) {
      const why = reasonOf(error);
      report({ kind: "file-corrupt", message: `line ${number} is not a line of an export: ${why}` });
    }
  }
  return { ...reader.end(), damage };
}

type Report = (found: Damage | undefined) => void;

interface Reader {
  take(row: Row): void;
  end(): Omit<ExportReport, "damage">;
}

/** header ─▶ { stream ─▶ checkpoint* ─▶ event* }* ─▶ end */
function createReader(report: Report): Reader {
  const count = { events: 0, streams: 0, checkpoints: 0 };
  const unsigned: UnsignedEnd[] = [];
  let isSigned = false;
  let thread: string | undefined;
  let publicKey: string | undefined;
  let key: Verifier | undefined;
  let walk: Walk | undefined;
  let isEnded = false;

  function header(row: Row): void {
    if (text(row, "format") !== FORMAT || integer(row, "v") !== FORMAT_VERSION) throw wrongKind("format");
    thread = text(row, "thread");
    const pem = row["publicKey"];
    if (typeof pem !== "string") return;
    key = verifierOf(pem);
    publicKey = pem;
  }

  function endStream(): void {
    const found = walk?.end();
    if (found === undefined) return;
    isSigned ||= found.signedTo > 0;
    if (found.signedTo < found.lastVersion && unsigned.length < MAX_REPORTED) unsigned.push(found);
  }

  function end(row: Row): void {
    endStream();
    if (walk?.stream !== thread) report({ kind: "file-corrupt", message: `its last stream is not that of ${thread}` });
    walk = undefined;
    isEnded = integer(row, "events") === count.events && integer(row, "checkpoints") === count.checkpoints;
  }

  function current(): Walk {
    if (walk === undefined) throw wrongKind("stream before it");
    return walk;
  }

  return {
    take(row) {
      const kind = text(row, "kind");
      if (isEnded || (thread === undefined) !== (kind === "header")) throw wrongKind("place");
      switch (kind) {
        case "header":
          return header(row);
        case "stream":
          endStream();
          walk = createWalk(text(row, "stream"), integer(row, "lastVersion"), report);
          count.streams += 1;
          return;
        case "checkpoint":
          count.checkpoints += 1;
          return current().checkpoint(row, key);
        case "event":
          count.events += 1;
          return current().event(row);
        case "end":
          return end(row);
        default:
          throw wrongKind("kind");
      }
    },
    end() {
      endStream();
      if (!isEnded) report({ kind: "tail-lost", message: "lines of the export are missing, or its end is" });
      // A key that has signed nothing here proves nothing.
      const signer = isSigned ? { keyId: key?.keyId, publicKey } : { keyId: undefined, publicKey: undefined };
      return { thread, ...signer, ...count, unsigned };
    },
  };
}

interface Walk {
  readonly stream: string;
  checkpoint(row: Row, key: Verifier | undefined): void;
  event(row: Row): void;
  end(): UnsignedEnd;
}

/** One stream: how far its chain has come, and the checkpoints that are still due. */
function createWalk(stream: string, lastVersion: number, report: Report): Walk {
  const due = new Map<number, Checkpoint>();
  let head = { version: 0, hash: genesisOf(stream) };
  let signedTo = 0;
  return {
    stream,
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
      // Whole threads are purged, never a part of one that can be exported.
      text(row, "body");
      report(checkLink(row, head));
      head = { version: integer(row, "version"), hash: text(row, "hash") };
      const { version, hash } = head;
      const signed = due.get(version);
      due.delete(version);
      if (signed?.hash === hash) signedTo = version;
      if (signed === undefined || signed.hash === hash) return;
      const message = `event ${version} of ${stream} is not the one its checkpoint signed`;
      report({ kind: "checkpoint-mismatch", message, stream, version });
    },
    end() {
      const promised = [...due.keys()].reduce((last, version) => Math.max(last, version), lastVersion);
      if (head.version < promised) {
        const message = `${stream} ends at event ${head.version}, but ${promised} is promised`;
        report({ kind: "tail-lost", message, stream, version: head.version + 1 });
      }
      return { stream, signedTo, lastVersion: head.version };
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

/** One flat object of texts, numbers and nulls, like a row. */
function toRow(line: string): Row {
  const value = parsed(line);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrongKind("object");
  const row: Record<string, string | number | null> = {};
  for (const [name, field] of Object.entries(value)) {
    if (typeof field !== "string" && typeof field !== "number" && field !== null) throw wrongKind(name);
    row[name] = field;
  }
  return row;
}
