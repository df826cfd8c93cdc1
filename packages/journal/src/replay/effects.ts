/**
 * Which files a thread may have changed between two lists of files: from entering an envelope to leaving it, and from there
 * to entering the next, where nothing may change. Collects what is recorded; the lists are compared by the caller.
 */
import { EFFECTS, pathsOfCall } from "./call-paths.ts";
import { listIn, numberIn, textIn, type Entry, type Facts } from "./facts.ts";
import { isBelow, specOf } from "./spec.ts";

export interface Span {
  readonly stream: string;
  readonly version: number;
  /** `between`: from leaving one envelope to entering the next. */
  readonly kind: "inside" | "between";
  /** Names of the lists; absent: none was taken. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly roots: readonly string[];
  /** Files that recorded calls wrote; undefined: a command or a server ran, and may have written any. */
  readonly written: readonly string[] | undefined;
  /** The envelope is still in force. */
  readonly isOpen: boolean;
}

/** What a turn has compared by itself, in an envelope that may not write the files. */
export interface Compared {
  readonly stream: string;
  readonly version: number;
  readonly files: number;
  /** Outside what could be written by then. */
  readonly changed: readonly string[];
  /** Changed as well, and not named. */
  readonly more: number;
  /** Absent: all of them were looked at. */
  readonly notExamined: string | undefined;
}

interface Open {
  readonly version: number;
  readonly before: string | undefined;
  readonly roots: Set<string>;
  readonly written: Set<string>;
  mayWriteAny: boolean;
}

/** Programs of the owner or of a client that may write as well. */
const OTHERS: ReadonlySet<string> = new Set(["hook.ran", "mcp.listed", "client.intended"]);

export class EffectSpans {
  readonly #spans: Span[] = [];
  #open: Open | undefined;
  #left: { readonly manifest: string; readonly version: number } | undefined;
  #workspace = "/";
  readonly #compared: Compared[] = [];
  /** Folders that could be written since the envelope in force was entered. */
  #writable: readonly string[] = [];

  take(entry: Entry): void {
    if (this.#open !== undefined && OTHERS.has(entry.type)) this.#open.mayWriteAny = true;
    const { body, type } = entry;
    if (body === undefined) return;
    switch (type) {
      case "thread.created":
      case "thread.moved":
        this.#workspace = textIn(body, "workspace") ?? this.#workspace;
        return;
      case "turn.started":
        this.#writable = specOf(body["envelope"])?.writeRoots ?? [];
        return;
      case "envelope.entered":
        return this.#enter(entry, body);
      case "envelope.left":
        return this.#leave(entry, body);
      case "hop.taken":
        return this.#widen(specOf(body["to"])?.writeRoots ?? []);
      case "tool.intended":
        return this.#wrote(body);
      case "files.compared":
        return this.#compare(entry, body);
      default:
        return;
    }
  }

  get compared(): readonly Compared[] {
    return this.#compared;
  }

  end(stream: string): readonly Span[] {
    if (this.#open !== undefined) this.#close(stream, { after: undefined, isOpen: true });
    return this.#spans;
  }

  #widen(roots: readonly string[]): void {
    this.#writable = [...this.#writable, ...roots];
    for (const root of roots) this.#open?.roots.add(root);
  }

  #compare({ stream, version }: Entry, body: Facts): void {
    const paths = listIn(body, "changed").flatMap((one) => textIn(one, "path") ?? []);
    const changed = paths.filter((path) => !this.#writable.some((root) => isBelow(path, root)));
    const [files = 0, more = 0] = [numberIn(body, "files"), numberIn(body, "more")];
    this.#compared.push({ stream, version, files, changed, more, notExamined: textIn(body, "notExamined") });
  }

  #enter({ stream, version }: Entry, body: Facts): void {
    const spec = specOf(body["envelope"]);
    this.#writable = spec?.writeRoots ?? [];
    const manifest = textIn(body, "manifest");
    if (this.#left !== undefined && manifest !== undefined) {
      const { manifest: before, version: since } = this.#left;
      const span = { stream, version: since, before, after: manifest, roots: [], written: [] };
      this.#spans.push({ ...span, kind: "between", isOpen: false });
    }
    this.#left = undefined;
    this.#open =
      spec?.hasManifest === true
        ? { version, before: manifest, roots: new Set(spec.writeRoots), written: new Set(), mayWriteAny: false }
        : undefined;
  }

  #leave({ stream, version }: Entry, body: Facts): void {
    const after = textIn(body, "manifest");
    if (this.#open !== undefined) this.#close(stream, { after, isOpen: false });
    this.#left = after === undefined ? undefined : { manifest: after, version };
  }

  #close(stream: string, end: { readonly after: string | undefined; readonly isOpen: boolean }): void {
    if (this.#open === undefined) return;
    const { version, before, roots, written, mayWriteAny } = this.#open;
    const facts = { stream, version, before, roots: [...roots], written: mayWriteAny ? undefined : [...written] };
    this.#spans.push({ ...facts, kind: "inside", ...end });
    this.#open = undefined;
  }

  #wrote(body: Facts): void {
    if (this.#open === undefined) return;
    const tool = textIn(body, "tool") ?? "";
    const effects = EFFECTS[tool];
    const paths = pathsOfCall(tool, body["arguments"], this.#workspace);
    if (effects === undefined || effects.includes("exec") || paths === undefined) this.#open.mayWriteAny = true;
    else for (const { path, access } of paths) if (access === "write") this.#open.written.add(path);
  }
}

/** Why a change of this file is not explained by the record; undefined: it is. */
export function unexplained({ kind, roots, written }: Span, path: string): string | undefined {
  if (kind === "between") return "between leaving one envelope and entering the next";
  if (!roots.some((root) => isBelow(path, root))) return "outside the folders that may be written";
  if (written === undefined) return undefined;
  // A new file changes nothing about its folders but that they exist.
  return written.some((file) => isBelow(file, path)) ? undefined : "and no recorded call writes it";
}
