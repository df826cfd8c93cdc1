/** The evidence of a server: what agents and users did, asked and concluded. */
import { HeddleApiError } from "./api-error.ts";
import type { Asking, Call, Http, Query } from "./http.ts";
import { readEvents } from "./sse.ts";
import type {
  CheckpointList,
  EvidenceChainAnswer,
  EvidenceDetail,
  EvidenceEntry,
  EvidenceFilter,
  EvidenceList,
  EvidenceNote,
  EvidenceNoteAbout,
  GateAnswer,
  ImportAnswer,
  LastVerdict,
  PurgeAnswer,
  VerdictAnswer,
} from "./types.ts";

export class EvidenceClient {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Newest first; `cursor` is the `nextCursor` of the page before. */
  query(filter: EvidenceFilter & EvidencePaging = {}, call?: Call): Promise<EvidenceList> {
    return this.#http.json("GET", "api/evidence", { ...call, query: wordsOf(filter) });
  }

  count(filter: EvidenceFilter = {}, call?: Call): Promise<{ count: number }> {
    return this.#http.json("GET", "api/evidence/count", { ...call, query: wordsOf(filter) });
  }

  get(entryId: string, call?: Call): Promise<EvidenceDetail> {
    return this.#http.json("GET", `api/evidence/${encodeURIComponent(entryId)}`, call);
  }

  chain(entryId: string, call?: Call): Promise<EvidenceChainAnswer> {
    return this.#http.json("GET", `api/evidence/${encodeURIComponent(entryId)}/chain`, call);
  }

  /** Its author is whoever the token belongs to. With a `noteId` it can be sent again after a broken connection. */
  note(threadId: string, note: EvidenceNote, call?: Call): Promise<EvidenceEntry> {
    return this.#http.json("POST", `api/threads/${encodeURIComponent(threadId)}/evidence`, { ...call, body: note });
  }

  /** About its subject, beside any thread. */
  noteAbout(note: EvidenceNoteAbout, call?: Call): Promise<EvidenceEntry> {
    return this.#http.json("POST", "api/evidence", { ...call, body: note });
  }

  /** Looks at the guards of a gate in the envelope of an idle thread; the proof is an entry, passed or refused. */
  gate(threadId: string, name: string, call?: Call): Promise<GateAnswer> {
    const path = `api/threads/${encodeURIComponent(threadId)}/gates/${encodeURIComponent(name)}`;
    return this.#http.json("POST", path, { ...call, body: {} });
  }

  /** A thread, a task with the threads of its attempts, or the whole record, as `heddle verify` does. */
  verify(
    question: { readonly subject?: string; readonly level?: 1 | 2 | 3 | 4 | 5 } = {},
    call?: Call,
  ): Promise<VerdictAnswer> {
    return this.#http.json("POST", "api/verify", { ...call, body: question });
  }

  /** What the last verification through this server found; null: there was none since it started. */
  lastVerdict(query: { readonly subject?: string } = {}, call?: Call): Promise<LastVerdict> {
    return this.#http.json("GET", "api/verify", { ...call, query });
  }

  /** Signed heads of the chain of a thread or a task, oldest first. */
  checkpoints(of: { readonly threadId: string } | { readonly taskId: string }, call?: Call): Promise<CheckpointList> {
    const path =
      "threadId" in of ? `threads/${encodeURIComponent(of.threadId)}` : `tasks/${encodeURIComponent(of.taskId)}`;
    return this.#http.json("GET", `api/${path}/checkpoints`, call);
  }

  /** A thread as a bundle, piece by piece, for `heddle verify` on any machine. Without its last line it is not whole. */
  async export(
    threadId: string,
    { outputs, ...call }: { readonly outputs?: boolean } & Call = {},
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const path = `api/threads/${encodeURIComponent(threadId)}/bundle`;
    const { body } = await this.#http.open("GET", path, { ...call, query: { outputs } });
    if (body === null) throw new HeddleApiError("server.failed", "the server sent no bundle");
    return body;
  }

  /** `trustKey`: the id of the key that signed it, which the server's home trusts from now on. */
  import(
    lines: NonNullable<Asking["lines"]>,
    { trustKey, ...call }: { readonly trustKey?: string } & Call = {},
  ): Promise<ImportAnswer> {
    return this.#http.json("POST", "api/evidence/import", { ...call, query: { trustKey }, lines });
  }

  /** Of a thread, an import or a note in no thread: what it said is gone, and its chain still verifies. */
  purge(id: string, call?: Call): Promise<PurgeAnswer> {
    return this.#http.json("POST", "api/evidence/purge", { ...call, body: { id } });
  }

  /**
   * Entries as they come, after a position or from now on, over one connection: it ends with it. Whoever continues after the
   * `position` of the last one misses none.
   */
  async *follow(
    { after, live, ...filter }: EvidenceFilter & { readonly after?: number; readonly live?: boolean } = {},
    call?: Call,
  ): AsyncGenerator<EvidenceEntry, void, void> {
    const query = { ...wordsOf(filter), after, follow: live };
    const response = await this.#http.open("GET", "api/evidence/events", { ...call, query });
    if (response.body === null) throw new HeddleApiError("server.failed", "the server sent no entries");
    for await (const event of readEvents(response.body)) {
      if (event.event === "end" || event.event === "lagged") return;
      // The server's own answer; unknown names are left to later versions.
      if (event.event === "message") yield JSON.parse(event.data) as EvidenceEntry;
    }
  }
}

interface EvidencePaging {
  readonly order?: "newest" | "oldest";
  readonly limit?: number;
  readonly cursor?: string;
}

function wordsOf({ subject, ref, ...filter }: EvidenceFilter & EvidencePaging): Query {
  const plain = Object.entries(filter).map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : value]);
  return {
    ...Object.fromEntries(plain),
    ...(subject === undefined
      ? {}
      : { subject: subject.id === undefined ? subject.type : `${subject.type}:${subject.id}` }),
    ...(ref === undefined ? {} : { ref: `${ref.type}:${ref.id}` }),
  };
}
